package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/gateway/telemetry"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/delivery"
	"aiv/runs/jobs"
)

// writeJobs writes metrics of what this process has handed out and taken back.
func writeJobs(d *jobs.Dispatcher) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		s := d.Stats()
		e.Family("aiv_jobs_settled_total", "counter", "Settlements of jobs, by provider and outcome.")
		for _, p := range slices.Sorted(maps.Keys(s.Settlements)) {
			for _, outcome := range slices.Sorted(maps.Keys(s.Settlements[p])) {
				e.Sample(float64(s.Settlements[p][outcome]), "provider", p, "outcome", string(outcome))
			}
		}
		e.Family("aiv_answer_tokens_total", "counter", "Tokens of answers, as workers reported them, by provider and kind.")
		for _, p := range slices.Sorted(maps.Keys(s.Usage)) {
			e.Sample(float64(s.Usage[p].InputTokens), "provider", p, "kind", "input")
			e.Sample(float64(s.Usage[p].OutputTokens), "provider", p, "kind", "output")
		}
		e.Family("aiv_answer_searches_total", "counter", "Web searches of answers, as workers reported them, by provider.")
		for _, p := range slices.Sorted(maps.Keys(s.Usage)) {
			e.Sample(float64(s.Usage[p].Searches), "provider", p)
		}
		byProvider(e, "aiv_job_leases_expired_total", "Leases that ended without being renewed, by provider.", s.Expired)
		h := telemetry.Histogram{Counts: s.Started.Counts[:], Sum: s.Started.Sum.Seconds()}
		for _, bound := range jobs.StartedBounds {
			h.Bounds = append(h.Bounds, bound.Seconds())
		}
		e.Family("aiv_job_start_seconds", "histogram", "Time from the creation of a run to the first claim of each of its jobs.")
		e.Histogram(h)
		e.Gauge("aiv_claims_waiting", "Claims that wait for a job.", float64(s.Waiting))
	}
}

// byProvider writes a counter of each provider.
func byProvider(e *telemetry.Exposition, name, help string, counts map[string]uint64) {
	e.Family(name, "counter", help)
	for _, p := range slices.Sorted(maps.Keys(counts)) {
		e.Sample(float64(counts[p]), "provider", p)
	}
}

// writeDeliveries writes metrics of the deliveries of this process.
func writeDeliveries(d *delivery.Dispatcher) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		s := d.Stats()
		e.Family("aiv_webhook_attempts_total", "counter", "Attempts to deliver an event, by outcome.")
		for _, outcome := range slices.Sorted(maps.Keys(s.Attempts)) {
			e.Sample(float64(s.Attempts[outcome]), "outcome", outcome)
		}
		e.Counter("aiv_webhook_attempt_seconds_total", "Time that attempts took.", s.AttemptTime.Seconds())
		e.Gauge("aiv_webhook_requests", "Requests to endpoints in progress.", float64(s.InFlight))
	}
}

// writeRecounts writes how many answers this process has recounted and, if the database answers in time, what waits for
// that in all accounts.
func writeRecounts(pool *pgxpool.Pool, c *visibility.Counter) func(context.Context, *telemetry.Exposition) {
	return func(ctx context.Context, e *telemetry.Exposition) {
		e.Counter("aiv_answers_recounted_total", "Answers recounted after a change of brands.", float64(c.Recounted()))
		waiting, err := within(ctx, func(ctx context.Context) (visibility.Backlog, error) { return c.Backlog(ctx, pool) })
		if err != nil {
			return
		}
		e.Gauge("aiv_answers_recounting", "Answers that wait to be recounted; counted in up to 10,000 rows of facts.", float64(waiting.Answers))
		e.Gauge("aiv_recount_oldest_seconds", "Time since the oldest change of brands whose recount has not ended; 0 if there is none.",
			waiting.Oldest.Seconds())
	}
}

// databaseTimeout bounds each read of the database for a page of metrics. It is longer in tests.
var databaseTimeout = 2 * time.Second

// writeBacklogs writes how many jobs this process has handed out. If the database answers, it also writes what waits
// there, for all processes together. A count that takes too long does not mean that the database is down: it is left
// out.
func writeBacklogs(pool *pgxpool.Pool, d *jobs.Dispatcher) func(context.Context, *telemetry.Exposition) {
	return func(ctx context.Context, e *telemetry.Exposition) {
		providers, err := within(ctx, func(ctx context.Context) ([]catalog.Provider, error) { return catalog.Providers(ctx, pool) })
		// Providers without claims report 0, so that alerts can compare rates.
		claimed := make(map[string]uint64)
		for _, p := range providers {
			claimed[p.Code] = 0
		}
		// If the providers could not be read, at least the providers with claims are written.
		maps.Copy(claimed, d.Stats().Claimed)
		byProvider(e, "aiv_jobs_claimed_total", "Jobs handed out to workers, by provider.", claimed)
		e.Family("aiv_database_up", "gauge", "1 if the database answered; if 0, the metrics read from it are missing, as is a count that took longer than 2 s.")
		if err != nil {
			e.Sample(0)
			return
		}
		e.Sample(1)
		deliveries, err := within(ctx, func(ctx context.Context) (webhooks.Backlog, error) {
			return webhooks.ReadBacklog(ctx, pool, MaxCounted)
		})
		if err == nil {
			e.Gauge("aiv_webhook_pending", "Deliveries that are pending; counted up to 10,000.", float64(deliveries.Pending))
			e.Gauge("aiv_webhook_lag_seconds", "How long the oldest due delivery to an enabled endpoint has been due.", deliveries.Lag.Seconds())
		}
		waiting, err := within(ctx, func(ctx context.Context) ([]jobs.ProviderBacklog, error) { return jobs.ReadBacklogs(ctx, pool) })
		if err != nil {
			return
		}
		each := func(name, help string, value func(*jobs.ProviderBacklog) float64) {
			e.Family(name, "gauge", help)
			for i := range waiting {
				e.Sample(value(&waiting[i]), "provider", waiting[i].Code)
			}
		}
		each("aiv_jobs_waiting", "Jobs that wait to be claimed, by provider.", func(p *jobs.ProviderBacklog) float64 { return float64(p.Waiting) })
		each("aiv_jobs_leased", "Jobs that workers have, by provider.", func(p *jobs.ProviderBacklog) float64 { return float64(p.Leased) })
		e.Family("aiv_provider_unavailable", "gauge", "1 while the provider is paused because a worker reported it unavailable, by provider and reason.")
		for i := range waiting {
			if reason := waiting[i].Unavailable; reason != nil {
				e.Sample(1, "provider", waiting[i].Code, "reason", *reason)
			}
		}
		each("aiv_provider_paused", "1 if the provider is paused by an operator or a worker, or throttled by workers, else 0.", func(p *jobs.ProviderBacklog) float64 {
			return oneIf(p.Paused)
		})
	}
}

// within calls read with a timeout.
func within[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	return read(ctx)
}
