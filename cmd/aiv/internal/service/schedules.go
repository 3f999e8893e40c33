package service

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/checks"
	"aiv/gateway"
	"aiv/gateway/telemetry"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
)

// newScheduler returns a Scheduler whose runs pass the checks of POST /v1/runs and are written by the same code.
func newScheduler(pool *pgxpool.Pool, waiting int, outage *store.Outage, log *slog.Logger) *schedules.Scheduler {
	writer := runs.New(runs.Config{
		Pool: pool, Checks: &checks.Registry{Checks: checks.Standard(), Catalog: catalog.New(pool)}, NewID: store.NewID, Timeout: writeTimeout,
		MaxWaiting: waiting, Enqueue: jobs.EnqueueSQL, Finished: RecordFinished,
	})
	return schedules.NewScheduler(schedules.SchedulerConfig{
		Config: schedules.Config{Pool: pool, NewID: store.NewID, Record: webhooks.Record, Events: gateway.EventData{}},
		Runs:   writer, Response: gateway.EncodeRunCreated, Derived: gateway.EventData{}, Outage: outage, Log: log,
	})
}

// writeSchedules writes metrics of what this process has carried out and derived. If the database answers, it also
// writes what waits there.
func writeSchedules(pool *pgxpool.Pool, s *schedules.Scheduler) func(context.Context, *telemetry.Exposition) {
	return func(ctx context.Context, e *telemetry.Exposition) {
		done := s.Stats()
		// The keys are sorted, so that the order of samples does not change between pages.
		counts := func(name, help string, labels [2]string, of map[[2]string]uint64) {
			e.Family(name, "counter", help)
			compare := func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
			for _, key := range slices.SortedFunc(maps.Keys(of), compare) {
				e.Sample(float64(of[key]), labels[0], key[0], labels[1], key[1])
			}
		}
		counts("aiv_schedule_occurrences_total", "Occurrences recorded, by status and code.", [2]string{"status", "code"}, done.Occurrences)
		counts("aiv_alerts_total", "Derived alerts that were opened and resolved, by type.", [2]string{"type", "change"}, done.Alerts)
		counts("aiv_recommendations_total", "Derived recommendations that were suggested and done, by type.", [2]string{"type", "change"},
			done.Recommendations)
		b, err := within(ctx, func(ctx context.Context) (schedules.Backlog, error) { return schedules.ReadBacklog(ctx, pool) })
		if err != nil {
			return
		}
		var paused int64
		for _, n := range b.Paused {
			paused += n
		}
		e.Family("aiv_schedules", "gauge", "Schedules, by status.")
		e.Sample(float64(b.Active), "status", schedules.Active)
		e.Sample(float64(paused), "status", schedules.Paused)
		e.Gauge("aiv_schedule_lag_seconds", "How long the longest due schedule has been due; 0 if none is.", b.Lag.Seconds())
		e.Gauge("aiv_evaluations_waiting", "Final runs of schedules that are not evaluated.", float64(b.Waiting))
		e.Gauge("aiv_evaluation_lag_seconds", "Since the first of them became final.", b.EvaluationLag.Seconds())
	}
}
