package schedules

import (
	"context"
	"time"

	"aiv/store"
)

// columns are the columns of Schedule, columnsOfOccurrence the columns of Occurrence.
const (
	columns = `account_id, id, name, status, paused_reason, cadence, at_minute, weekday, day, time_zone, model_ids, question_ids, repetitions,
  measurement_type, locale, country, language, min_change, next_at, last_due_at, last_run_id, credential_id, refused, created_at, updated_at`

	columnsOfOccurrence = `schedule_id, due_at, last_due_at, count, status, code, detail, run_id, created_at, evaluated_at`
)

// A Filter selects schedules of an account. An empty status selects all.
type Filter struct{ Status string }

// A Listed is a schedule and the time of the database's clock at which it was read.
type Listed struct {
	Schedule
	Now time.Time
}

// List returns a page of an account's schedules, newest first, and one more if there is one.
func List(ctx context.Context, db store.Querier, account store.ID, f Filter, page store.Page) ([]Listed, error) {
	q := store.KeysetQuery{Select: `SELECT ` + columns + `, clock_timestamp() AS now FROM schedules`, Order: []string{"created_at", "id"}, Page: page}
	q.Where("account_id = ?", account)
	q.Filter("status", f.Status)
	return store.ReadPage[Listed](ctx, db, &q)
}

// Get returns a schedule, or ErrNotFound.
func Get(ctx context.Context, db store.Querier, account, id store.ID) (*Listed, error) {
	return one(ctx, db, getSchedule, account, id)
}

const getSchedule = `SELECT ` + columns + `, clock_timestamp() FROM schedules WHERE account_id = $1 AND id = $2`

func one(ctx context.Context, db store.Querier, sql string, args ...any) (*Listed, error) {
	return store.ReadOne[Listed](ctx, db, ErrNotFound, sql, args...)
}

// Occurrences returns a page of a schedule's occurrences, latest due time first, and one more if there is one. It
// returns ErrNotFound.
func Occurrences(ctx context.Context, db store.Querier, account, schedule store.ID, status string, page store.Page) ([]Occurrence, error) {
	if _, err := Get(ctx, db, account, schedule); err != nil {
		return nil, err
	}
	q := store.KeysetQuery{Select: `SELECT ` + columnsOfOccurrence + ` FROM schedule_occurrences`, Order: []string{"due_at", "schedule_id"}, Page: page}
	q.Where("account_id = ?", account)
	q.Where("schedule_id = ?", schedule)
	q.Filter("status", status)
	return store.ReadPage[Occurrence](ctx, db, &q)
}
