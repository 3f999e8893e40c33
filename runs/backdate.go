package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/idempotency"
	"aiv/store"
)

// Backdated is the state of a run with times in the past, for sample data.
type Backdated struct {
	ID                          store.ID
	Status                      string
	CreatedAt                   time.Time
	StartedAt, FinishedAt       *time.Time
	Completed, Failed, Canceled int // jobs
}

// Backdate gives the runs of an account the states and times in past. The account must have no other runs. Runs that
// were backdated before stay as they are. Only sample data uses it.
func Backdate(ctx context.Context, pool *pgxpool.Pool, accountID store.ID, past []Backdated) error {
	n := len(past)
	// Columns for unnest, one element for each run.
	ids, statuses, created := make([]store.ID, n), make([]string, n), make([]time.Time, n)
	started, finished := make([]*time.Time, n), make([]*time.Time, n)
	completed, failed, canceled := make([]int, n), make([]int, n), make([]int, n)
	for i, p := range past {
		ids[i], statuses[i], created[i], started[i], finished[i] = p.ID, p.Status, p.CreatedAt, p.StartedAt, p.FinishedAt
		completed[i], failed[i], canceled[i] = p.Completed, p.Failed, p.Canceled
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// The records go before the times change, because a record is found by the time of its run's creation.
		if err := forgetKeys(ctx, tx, accountID, ids); err != nil {
			return fmt.Errorf("forget the keys of backdated runs: %w", err)
		}
		if _, err := tx.Exec(ctx, backdateRuns, accountID, ids, statuses, created, started, finished, completed, failed, canceled); err != nil {
			return fmt.Errorf("backdate runs: %w", err)
		}
		if _, err := tx.Exec(ctx, recountMonths, accountID); err != nil {
			return fmt.Errorf("count the months of backdated runs: %w", err)
		}
		return nil
	})
}

// forgetKeys deletes the idempotency records of the runs, which have the time of their creation. Runs that do not exist
// are left out.
func forgetKeys(ctx context.Context, tx pgx.Tx, account store.ID, ids []store.ID) error {
	rows, err := tx.Query(ctx, selectCreated, account, ids)
	if err != nil {
		return err
	}
	var id store.ID
	var at time.Time
	var runs []store.ID
	var created []time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		runs, created = append(runs, id), append(created, at)
		return nil
	})
	if err != nil {
		return err
	}
	return idempotency.Forget(ctx, tx, account, runs, created)
}
