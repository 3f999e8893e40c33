package service

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/gateway/telemetry"
	"aiv/store/task"
)

// purgeTimeout bounds a run of a purge. Purges work in small steps, so the next run continues where one was
// interrupted.
const purgeTimeout = time.Hour

// logRows returns the Run of a task that changes rows. It logs their number if there are any.
func logRows(log *slog.Logger, message string, run func(context.Context) (int64, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		rows, err := run(ctx)
		if rows > 0 {
			log.Info(message, "rows", rows)
		}
		return err
	}
}

// warnOfExpiry returns the Run of a task that warns of the credentials that expire soon.
func warnOfExpiry(pool *pgxpool.Pool, log *slog.Logger) func(context.Context) error {
	// most is the maximum number of keys that one run logs.
	const most = 20
	return func(ctx context.Context) error {
		expiring, err := auth.ReadExpiring(ctx, pool, ExpirySoon, MaxCounted)
		if err != nil {
			return fmt.Errorf("read the keys that expire soon: %w", err)
		}
		for i, k := range expiring {
			if i == most {
				log.Warn("more keys expire soon", "keys", len(expiring)-most)
				break
			}
			log.Warn("a key expires soon", "credential", k.ID.Text("cred"), "account", k.AccountID.Text("acct"), "name", k.Name,
				"key_prefix", k.KeyPrefix, "expires_at", k.ExpiresAt.UTC())
		}
		return nil
	}
}

// writeTasks writes metrics of the background work of this process.
func writeTasks(r *task.Runner) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		counts := r.Counts()
		e.Family("aiv_task_runs_total", "counter", "Runs of background tasks, by result.")
		for _, c := range counts {
			e.Sample(float64(c.Succeeded), "task", c.Name, "result", "succeeded")
			e.Sample(float64(c.Failed), "task", c.Name, "result", "failed")
		}
		// A task that has not succeeded yet has no sample: 0 would look like a success in 1970.
		e.Family("aiv_task_last_success_timestamp_seconds", "gauge",
			"When a run of the task last succeeded, in seconds since 1970.")
		for _, c := range counts {
			if !c.LastSuccess.IsZero() {
				e.Sample(float64(c.LastSuccess.UnixMilli())/1000, "task", c.Name)
			}
		}
	}
}
