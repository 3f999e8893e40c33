package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
	"aiv/insights"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
)

// purged is what `aiv purge` prints.
type purged struct {
	FinishedBefore string `json:"finished_before"`
	Runs           int64  `json:"runs"`
	Jobs           int64  `json:"jobs"`
}

func purge(ctx context.Context, c *call) error {
	c.JSONFlag()
	c.databaseFlags()
	actor := c.actorFlag()
	text := c.Flags.String("runs-before", "", "delete the runs that finished before this `TIME`: RFC 3339, or an age such as 400d or 720h")
	var remember time.Duration
	c.DurationFlag(&remember, "remember", 24*time.Hour, "the `DURATION` for which aiv serve remembers idempotency keys; at least 24h")
	if _, err := c.Parse("-runs-before"); err != nil {
		return err
	}
	if remember < 24*time.Hour {
		return c.Wrong("-remember must be at least 24h, which clients are promised")
	}
	now := time.Now()
	before, err := pastTime(*text, now)
	if err != nil {
		return c.Wrong("-runs-before: %v", err)
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		report, end := c.Progress(func(runs int) string { return "Deleted " + cli.Count(runs, "run", "runs") })
		total, err := purger(pool, actor(), report).FinishedBefore(ctx, before, remember)
		end()
		if err != nil {
			return unfinished(err, total)
		}
		return c.Print(purged{store.FormatTime(before), total.Runs, total.Jobs}, func(w io.Writer) {
			fmt.Fprintf(w, "Deleted %s with %s that finished before %s.\n", cli.Count(int(total.Runs), "run", "runs"),
				cli.Count(int(total.Jobs), "job", "jobs"), humanTime(&before, ""))
		})
	})
}

// purger deletes runs with the rows of all packages that refer to them.
func purger(pool *pgxpool.Pool, actor string, report func(runs int)) *runs.Purger {
	return &runs.Purger{
		Pool: pool, Actor: actor,
		Dependents: []runs.Dependent{
			{Lock: insights.LockRuns, Delete: insights.DetachRuns},
			{Prepare: jobs.Unqueue, Delete: jobs.DeleteRuns},
		},
		Progress: func(p runs.Purged) { report(int(p.Runs)) },
	}
}

// unfinished is the error of a command that stopped between two steps.
func unfinished(err error, total runs.Purged) error {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	return fmt.Errorf("stopped after %s; what was deleted stays deleted, and the same command deletes the rest: %w",
		cli.Count(int(total.Runs), "run", "runs"), err)
}

// pastTime reads a time in RFC 3339, or an age in days or in the units of time.ParseDuration.
func pastTime(text string, now time.Time) (time.Time, error) {
	if t, err := store.ParseTime(text); err == nil {
		if t.After(now) {
			return time.Time{}, errors.New("the time is in the future")
		}
		return t, nil
	}
	age, err := cli.ParseDuration(text)
	if err != nil || age < 0 {
		return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-01-31T00:00:00Z nor an age such as 400d", text)
	}
	return now.Add(-age), nil
}

// erased is what `aiv accounts erase` prints.
type erased struct {
	ID        string `json:"id"`
	Runs      int64  `json:"runs"`
	Jobs      int64  `json:"jobs"`
	Questions int64  `json:"questions"`
	Insights  int64  `json:"recommendations_and_alerts"`
	Events    int64  `json:"events"`
}

// settleTime is longer than a request (35 s) and the last statement that it began (30 s) take together: requests that were
// admitted before the keys were revoked have ended after it.
const settleTime = 70 * time.Second

// accountsErase deletes an account's data twice: at once, and again when no request can add to it any more. Each of its steps
// may be repeated, so that an interrupted command is finished by running it again.
func accountsErase(ctx context.Context, c *call) error {
	c.JSONFlag()
	c.databaseFlags()
	actor := c.actorFlag()
	confirm := c.Flags.String("confirm", "", "the account's `NAME`, to confirm that its data is deleted permanently")
	args, err := c.Parse("ID", "-confirm")
	if err != nil {
		return err
	}
	id, err := c.accountID("ID", args[0])
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		admin := &auth.Admin{Pool: pool, Actor: actor()}
		account, err := admin.Account(ctx, id)
		if err != nil {
			return err
		}
		if account.Name != *confirm {
			return fmt.Errorf("the name of account %s is not %q; nothing was changed; see aiv accounts list", args[0], *confirm)
		}
		report, end := c.Progress(func(runs int) string { return "Deleted " + cli.Count(runs, "run", "runs") })
		defer end()
		e := &erasure{pool: pool, account: id, admin: admin, purger: purger(pool, actor(), report), result: erased{ID: args[0]}}
		if err := e.run(ctx); err != nil {
			return unfinished(err, runs.Purged{Runs: e.result.Runs, Jobs: e.result.Jobs})
		}
		end()
		return c.Print(e.result, func(w io.Writer) {
			fmt.Fprintf(w, "Account %s is erased: %s with %s, %s, %s and %s are deleted. Its totals of usage stay.\n", e.result.ID,
				cli.Count(int(e.result.Runs), "run", "runs"), cli.Count(int(e.result.Jobs), "job", "jobs"),
				cli.Count(int(e.result.Questions), "question", "questions"),
				cli.Count(int(e.result.Insights), "recommendation or alert", "recommendations and alerts"),
				cli.Count(int(e.result.Events), "event", "events"))
		})
	})
}

// An erasure deletes the data of one account.
type erasure struct {
	pool    *pgxpool.Pool
	account store.ID
	admin   *auth.Admin
	purger  *runs.Purger
	result  erased
}

func (e *erasure) run(ctx context.Context) error {
	revoked, err := e.admin.BeginErasing(ctx, e.account)
	if err != nil {
		return err
	}
	settled := time.After(settleTime - revoked)
	if err := e.deleteData(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-settled:
	}
	if err := e.deleteData(ctx); err != nil {
		return err
	}
	for _, erase := range []func(context.Context, *pgxpool.Pool, store.ID) error{jobs.Erase, webhooks.EraseEndpoints, limits.Erase} {
		if err := erase(ctx, e.pool, e.account); err != nil {
			return err
		}
	}
	return e.admin.EndErasing(ctx, e.account)
}

// deleteData deletes the rows of the account that no later step of run deletes or needs.
func (e *erasure) deleteData(ctx context.Context) error {
	total, err := e.purger.Account(ctx, e.account)
	e.result.Runs += total.Runs
	e.result.Jobs += total.Jobs
	if err != nil {
		return err
	}
	n, err := insights.Erase(ctx, e.pool, e.account)
	e.result.Insights += n
	if err != nil {
		return err
	}
	n, err = webhooks.EraseEvents(ctx, e.pool, e.account)
	e.result.Events += n
	if err != nil {
		return err
	}
	n, err = (&catalog.Admin{Pool: e.pool}).EraseQuestions(ctx, e.account)
	e.result.Questions += n
	return err
}
