// Package deletion deletes runs and accounts with the rows of all packages that refer to them, as the tables of their
// capabilities say. It owns no table.
package deletion

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/runs"
	"aiv/store"
	"aiv/store/schema"
)

// Runs returns a Purger that deletes runs with the rows that refer to them. It calls report with the number of runs
// that are deleted so far.
func Runs(pool *pgxpool.Pool, all []schema.Capability, actor string, report func(runs int)) *runs.Purger {
	return &runs.Purger{
		Pool: pool, Actor: actor, Tables: schema.Tables(all),
		Progress: func(p runs.Purged) { report(int(p.Runs)) },
	}
}

// Erased counts the rows that the erasure of an account deleted.
type Erased struct {
	runs.Purged
	Rows map[string]int64 // by table, besides the rows of runs
}

// Account deletes an account's data, waits until requests in flight have ended, and deletes again. Each of its steps
// may be repeated, so that an interrupted erasure is finished by another call. It calls report as [Runs] does, and
// waiting before the wait. With an error, it returns what was deleted before.
func Account(ctx context.Context, admin *auth.Admin, all []schema.Capability, id store.ID, report func(runs int),
	waiting func(time.Duration)) (Erased, error) {
	e := &erasure{
		account: id, admin: admin, purger: Runs(admin.Pool, all, admin.Actor, report), waiting: waiting,
		erased: Erased{Rows: make(map[string]int64)},
	}
	err := e.run(ctx)
	return e.erased, err
}

// SettleTime is longer than a request (35 s) and the last statement that it began (30 s) take together: requests that
// were admitted before the keys were revoked have ended after it.
const SettleTime = 70 * time.Second

// An erasure deletes the data of one account.
type erasure struct {
	account store.ID
	admin   *auth.Admin
	purger  *runs.Purger
	waiting func(time.Duration)
	erased  Erased
}

// run is the course of an erasure. The keys are revoked first, so that SettleTime passes while data is deleted. The
// second deletion removes what requests in flight have added meanwhile.
func (e *erasure) run(ctx context.Context) error {
	revoked, err := e.admin.BeginErasing(ctx, e.account)
	if err != nil {
		return err
	}
	// revoked is the time since the latest key was revoked, so a repeated erasure need not wait again.
	settled := time.Now().Add(SettleTime - revoked)
	if err := e.deleteData(ctx); err != nil {
		return err
	}
	if left := time.Until(settled); left > 0 {
		e.waiting(left)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(left):
		}
	}
	if err := e.deleteData(ctx); err != nil {
		return err
	}
	for _, t := range e.purger.Tables {
		if err := e.deleteRows(ctx, t.Name, t.Erase.Last); err != nil {
			return err
		}
	}
	return e.admin.EndErasing(ctx, e.account)
}

// deleteData deletes the rows of the account that no later step of run deletes or needs.
func (e *erasure) deleteData(ctx context.Context) error {
	for _, t := range e.purger.Tables {
		if err := e.deleteRows(ctx, t.Name, t.Erase.Before); err != nil {
			return err
		}
	}
	// The totals are added even after an error, because what was deleted stays deleted.
	total, err := e.purger.Account(ctx, e.account)
	e.erased.Runs += total.Runs
	e.erased.Jobs += total.Jobs
	if err != nil {
		return err
	}
	for _, t := range e.purger.Tables {
		if err := e.deleteRows(ctx, t.Name, t.Erase.First); err != nil {
			return err
		}
	}
	return nil
}

// deleteRows erases the account's rows of a table and counts them. A nil f does nothing.
func (e *erasure) deleteRows(ctx context.Context, table string, f schema.EraseFunc) error {
	if f == nil {
		return nil
	}
	n, err := f(ctx, e.admin.Pool, table, e.account)
	e.erased.Rows[table] += n
	if err != nil {
		return fmt.Errorf("erase rows of %s: %w", table, err)
	}
	return nil
}
