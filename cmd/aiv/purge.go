package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/deletion"
	"aiv/store"
)

// purged is what `aiv purge` prints.
type purged struct {
	FinishedBefore string `json:"finished_before"`
	Runs           int64  `json:"runs"`
	Jobs           int64  `json:"jobs"`
}

// purge deletes runs of all accounts in small transactions, so that it may be interrupted and repeated. Runs whose
// idempotency keys may still be replayed stay: -remember must be the value of aiv serve.
func purge(ctx context.Context, c *call) error {
	text := c.Flags.String("runs-before", "", "delete the runs that finished before this `TIME`: RFC 3339, or an age such as 400d or 720h")
	var remember time.Duration
	c.DurationFlag(&remember, "remember", 24*time.Hour, "the `DURATION` for which aiv serve remembers idempotency keys; at least 24h")
	if _, err := c.Parse("-runs-before"); err != nil {
		return err
	}
	if remember < 24*time.Hour {
		return c.Wrong("-remember must be at least 24h: clients are promised that time")
	}
	now := time.Now()
	before, err := pastTime(*text, now)
	if err != nil {
		return c.Wrong("-runs-before: %v", err)
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		report, end := c.Progress(runsDeleted)
		total, err := deletion.Runs(pool, capability.All, c.actor(), report).FinishedBefore(ctx, before, remember)
		end()
		if err != nil {
			return unfinished(err, total.Runs)
		}
		return c.Print(purged{store.FormatTime(before), total.Runs, total.Jobs}, func(w io.Writer) {
			fmt.Fprintf(w, "Deleted %s with %s that finished before %s.\n", cli.Count(total.Runs, "run", "runs"),
				cli.Count(total.Jobs, "job", "jobs"), humanTime(&before, ""))
		})
	})
}

// runsDeleted describes the progress of a deletion.
func runsDeleted(n int) string { return "Deleted " + cli.Count(n, "run", "runs") }

// unfinished is the error of a command that stopped between two steps.
func unfinished(err error, runs int64) error {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	return fmt.Errorf("stopped after %s; what was deleted stays deleted, and the same command deletes the rest: %w",
		cli.Count(runs, "run", "runs"), err)
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
