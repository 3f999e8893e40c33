// Package deletion deletes runs and accounts with the rows of all packages that refer to them. It owns no table: each package deletes
// its own rows.
package deletion

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/insights"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
)

// Runs returns a Purger that deletes runs with the rows that refer to them. It calls report with the number of runs that are deleted so far.
func Runs(pool *pgxpool.Pool, actor string, report func(runs int)) *runs.Purger {
	return &runs.Purger{
		Pool: pool, Actor: actor,
		Dependents: []runs.Dependent{
			{Lock: insights.LockRuns, Delete: insights.DetachRuns},
			{Prepare: jobs.Unqueue, Delete: jobs.DeleteRuns},
		},
		Progress: func(p runs.Purged) { report(int(p.Runs)) },
	}
}

// Erased counts the rows that the erasure of an account deleted.
type Erased struct{ Runs, Jobs, Questions, Insights, Events int64 }

// Account deletes an account's data twice: at once, and again when no request can add to it any more. Each of its steps may be
// repeated, so that an interrupted erasure is finished by another call. It calls report as [Runs] does, and waiting before it waits
// for requests to end. With an error, it returns what was deleted before.
func Account(ctx context.Context, admin *auth.Admin, id store.ID, report func(runs int), waiting func(time.Duration)) (Erased, error) {
	e := &erasure{account: id, admin: admin, purger: Runs(admin.Pool, admin.Actor, report), waiting: waiting}
	err := e.run(ctx)
	return e.erased, err
}

// SettleTime is longer than a request (35 s) and the last statement that it began (30 s) take together: requests that were
// admitted before the keys were revoked have ended after it.
const SettleTime = 70 * time.Second

// An erasure deletes the data of one account.
type erasure struct {
	account store.ID
	admin   *auth.Admin
	purger  *runs.Purger
	waiting func(time.Duration)
	erased  Erased
}

func (e *erasure) run(ctx context.Context) error {
	revoked, err := e.admin.BeginErasing(ctx, e.account)
	if err != nil {
		return err
	}
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
	for _, erase := range []func(context.Context, *pgxpool.Pool, store.ID) error{jobs.Erase, webhooks.EraseEndpoints, limits.Erase} {
		if err := erase(ctx, e.admin.Pool, e.account); err != nil {
			return err
		}
	}
	return e.admin.EndErasing(ctx, e.account)
}

// deleteData deletes the rows of the account that no later step of run deletes or needs.
func (e *erasure) deleteData(ctx context.Context) error {
	total, err := e.purger.Account(ctx, e.account)
	e.erased.Runs += total.Runs
	e.erased.Jobs += total.Jobs
	if err != nil {
		return err
	}
	n, err := insights.Erase(ctx, e.admin.Pool, e.account)
	e.erased.Insights += n
	if err != nil {
		return err
	}
	if err := webhooks.HideEndpoints(ctx, e.admin.Pool, e.account); err != nil {
		return err
	}
	n, err = events.Erase(ctx, e.admin.Pool, e.account)
	e.erased.Events += n
	if err != nil {
		return err
	}
	n, err = (&catalog.Admin{Pool: e.admin.Pool}).EraseQuestions(ctx, e.account)
	e.erased.Questions += n
	return err
}
