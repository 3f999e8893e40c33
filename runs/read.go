package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Filter chooses among an account's runs. What is empty chooses nothing.
type Filter struct {
	Statuses        []string
	MeasurementType string
	Country         string
	ModelID         string
	From, To        *time.Time // of creation; From is included, To is not
}

// columns fit the fields of Run.
const columns = `
r.id, r.account_id, r.credential_id, r.status, r.measurement_type, r.methodology_version, r.model_ids, r.question_ids, r.repetitions,
r.locale, r.country, r.language, r.total_jobs, r.jobs_running, r.jobs_completed, r.jobs_failed, r.jobs_canceled, r.created_at,
r.started_at, r.finished_at`

const (
	selectRuns = `SELECT ` + columns + ` FROM measurement_runs r`

	// selectRunsByModel begins at the rows of one model, which have the account and the order as well.
	selectRunsByModel = `SELECT ` + columns + ` FROM measurement_run_models m
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r
  WHERE (r.account_id, r.id) >= (m.account_id, m.run_id) AND (r.account_id, r.id) <= (m.account_id, m.run_id)
  ORDER BY r.account_id, r.id LIMIT 1) r`

	// selectRun writes the key as a range in the primary key's order, so that only the primary key serves: other indexes
	// have the account and the id as well, which look as good for an equality as long as the table is small.
	selectRun = selectRuns + `
WHERE (r.account_id, r.id) >= ($1, $2) AND (r.account_id, r.id) <= ($1, $2) ORDER BY r.account_id, r.id LIMIT 1`
)

// List returns a page of an account's runs, newest first, and one run more if there is one. Of several filters it reads
// through the index of the first in this order: model, country, status, measurement type.
func (r *Runs) List(ctx context.Context, account store.ID, f Filter, page store.Page) ([]Run, error) {
	s := store.KeysetQuery{Select: selectRuns, Order: []string{"r.created_at", "r.id"}, From: f.From, To: f.To, Page: page}
	owner := "r.account_id = ?"
	if f.ModelID != "" {
		s.Select, owner = selectRunsByModel, "m.account_id = ?"
		s.Order, s.Named = []string{"m.created_at", "m.run_id"}, []string{"created_at", "id"}
	}
	s.Where(owner, account)
	s.Filter("m.model_id", f.ModelID)
	s.Filter("r.country", f.Country)
	s.Filter("r.status", some(f.Statuses, Statuses)...)
	s.Filter("r.measurement_type", f.MeasurementType)
	return store.ReadPage[Run](ctx, r.cfg.Pool, &s)
}

// Get returns one run of the account, or nil.
func (r *Runs) Get(ctx context.Context, account, id store.ID) (*Run, error) {
	rows, err := r.cfg.Pool.Query(ctx, selectRun, account, id)
	if err != nil {
		return nil, err
	}
	run, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[Run])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return run, err
}

// some returns the words chosen, or nil where they are all that there are, which is no choice.
func some(chosen, words []string) []string {
	if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(chosen, w) }) {
		return chosen
	}
	return nil
}
