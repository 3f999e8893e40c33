package service

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/checks"
	"aiv/gateway"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
)

// newScheduler returns a Scheduler whose runs pass the checks of POST /v1/runs and are written by the same code.
func newScheduler(pool *pgxpool.Pool, waiting int, log *slog.Logger) *schedules.Scheduler {
	writer := runs.New(runs.Config{
		Pool: pool, Checks: &checks.Registry{Checks: checks.Standard(), Catalog: catalog.New(pool)}, NewID: store.NewID, Timeout: writeTimeout,
		MaxWaiting: waiting, Enqueue: jobs.EnqueueSQL, Finished: RecordFinished,
	})
	return schedules.NewScheduler(schedules.SchedulerConfig{
		Config: schedules.Config{Pool: pool, NewID: store.NewID, Record: webhooks.Record, Events: gateway.EventData{}},
		Runs:   writer, Answer: gateway.EncodeRunCreated, Derived: gateway.EventData{}, Log: log,
	})
}
