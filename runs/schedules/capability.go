package schedules

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/schema"
)

// Capability is what this package owns. aiv serve changes schedules for customers; aiv dispatch carries them out.
var Capability = schema.Capability{
	Name: "schedules",
	Tables: []schema.Table{
		{Name: "schedules", Placement: schema.ByAccount, Serve: all,
			Dispatch: schema.Privileges{schema.Select, schema.UpdateOf("status", "paused_reason", "next_at", "last_due_at", "last_run_id",
				"refused", "updated_at")},
			Erase: schema.Erasure{Before: eraseSchedules}},
		{Name: "schedule_occurrences", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select, schema.Delete},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.UpdateOf("evaluated_at"), schema.Delete},
			Erase:    schema.Erasure{With: "schedules"}, Purge: schema.Purge{Lock: lockForRuns, Delete: detachRuns}},
		{Name: "schedule_accounts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select, schema.Insert, schema.Update},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update}, Erase: schema.Erasure{Last: schema.EraseAtOnce}},
	},
	Invariants: Invariants(),
	Prefixes:   map[string]string{"schedule": "sched"},
	Events: []schema.EventType{
		{Name: events.SchedulePaused, Scope: "runs:read"},
		{Name: events.ScheduleSkipped, Scope: "runs:read"},
	},
}

var all = schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete}

// lockForRuns locks the account's row as an evaluation does, before rows of runs are locked.
func lockForRuns(ctx context.Context, tx pgx.Tx, account store.ID, _ []store.ID) error {
	_, err := tx.Exec(ctx, `SELECT FROM schedule_accounts WHERE account_id = $1 FOR NO KEY UPDATE`, account)
	return err
}

// detachRuns is a [schema.PurgeFunc]. Schedules, whose rows a due time locks for the shortest time, come last.
func detachRuns(ctx context.Context, tx pgx.Tx, table string, account store.ID, runs []store.ID) error {
	if err := schema.DetachRuns(ctx, tx, table, account, runs); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE schedules SET last_run_id = NULL WHERE account_id = $1 AND last_run_id = ANY ($2)`, account, runs)
	return err
}

// eraseSchedules is a [schema.EraseFunc]: it deletes one schedule with its occurrences in each transaction.
func eraseSchedules(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (rows int64, err error) {
	for more := true; more; {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			var id store.ID
			// Step may call this function several times.
			more = false
			err := tx.QueryRow(ctx, `SELECT id FROM schedules WHERE account_id = $1 ORDER BY id LIMIT 1 FOR UPDATE`, account).Scan(&id)
			if err == pgx.ErrNoRows {
				return nil
			}
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM schedule_occurrences WHERE account_id = $1 AND schedule_id = $2`, account, id); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `DELETE FROM schedules WHERE account_id = $1 AND id = $2`, account, id); err != nil {
				return err
			}
			rows, more = rows+1, true
			return nil
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
