package service

import (
	"context"
	"runtime/metrics"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/telemetry"
	"aiv/limits"
	"aiv/runs"
	"aiv/store"
	"aiv/store/batch"
)

// Credentials are reported from ExpirySoon before their expiry.
const ExpirySoon = 14 * 24 * time.Hour

// MaxCounted bounds what is counted in the database for a page of metrics.
const MaxCounted = 10_000

// writeProcess writes metrics of the build, the process and the Go runtime.
func writeProcess(started time.Time) func(context.Context, *telemetry.Exposition) {
	b := ThisBuild()
	commit := "unknown"
	if b.Commit != nil {
		commit = *b.Commit
	}
	// source is the name of a metric of package runtime/metrics, and name the one under which it is written.
	samples := []struct{ source, name, kind, help string }{
		{"/sched/goroutines:goroutines", "go_goroutines", "gauge", "Goroutines."},
		{"/sched/gomaxprocs:threads", "go_sched_gomaxprocs_threads", "gauge", "Maximum number of processors that run Go code."},
		{"/memory/classes/heap/objects:bytes", "go_heap_objects_bytes", "gauge", "Memory of objects, including those not yet collected."},
		{"/memory/classes/total:bytes", "go_memory_bytes", "gauge", "Memory that the Go runtime obtained from the system."},
		{"/gc/cycles/total:gc-cycles", "go_gc_cycles_total", "counter", "Garbage collections."},
		{"/gc/heap/allocs:bytes", "go_allocated_bytes_total", "counter", "Memory allocated."},
		{"/cpu/classes/gc/total:cpu-seconds", "go_gc_cpu_seconds_total", "counter", "Estimated processor time of garbage collection."},
	}
	return func(_ context.Context, e *telemetry.Exposition) {
		e.Family("aiv_build_info", "gauge", "Always 1; the labels identify the build.")
		e.Sample(1, "version", b.Version, "commit", commit, "goversion", b.Go)
		e.Gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", float64(started.UnixMilli())/1000)
		for _, s := range samples {
			read := []metrics.Sample{{Name: s.source}}
			metrics.Read(read)
			e.Family(s.name, s.kind, s.help)
			switch v := read[0].Value; v.Kind() {
			case metrics.KindUint64:
				e.Sample(float64(v.Uint64()))
			case metrics.KindFloat64:
				e.Sample(v.Float64())
			}
		}
	}
}

// writeRequests writes metrics of the limiter, the creation of runs and their batchers.
func writeRequests(limiter *limits.Limiter, writer *runs.Runs) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		l, r := limiter.Stats(), writer.Stats()
		e.Family("aiv_limiter_decisions_total", "counter", "Requests with a well-formed key, by decision.")
		e.Sample(float64(l.Admitted), "decision", "admitted")
		e.Sample(float64(l.Refused), "decision", "refused")
		e.Sample(float64(l.Unknown), "decision", "unknown_key")

		e.Family("aiv_run_requests_total", "counter", "Requests to create a run, by outcome.")
		e.Sample(float64(r.Created), "outcome", "created")
		e.Sample(float64(r.Replayed), "outcome", "replayed")
		e.Sample(float64(r.Refused), "outcome", "refused")
		e.Sample(float64(r.Conflicts), "outcome", "conflict")
		e.Sample(float64(r.Failed), "outcome", "failed")
		e.Counter("aiv_jobs_created_total", "Jobs of created runs.", float64(r.Jobs))

		batchers := []struct {
			name  string
			stats batch.Stats
		}{{"counts", l.Counts}, {"lookups", l.Lookups}, {"small_runs", r.Small}, {"large_runs", r.Large}, {"metered_runs", r.Metered}, {"large_metered_runs", r.LargeMetered}, {"run_reads", r.Reads}}
		each := func(name, kind, help string, value func(*batch.Stats) float64) {
			e.Family(name, kind, help)
			for i := range batchers {
				e.Sample(value(&batchers[i].stats), "batcher", batchers[i].name)
			}
		}
		e.Family("aiv_batch_size", "histogram", "Requests in a batch, by batcher.")
		for i := range batchers {
			// The sum of the sizes of all batches is the number of requests.
			h := telemetry.Histogram{Counts: batchers[i].stats.Sizes[:], Sum: float64(batchers[i].stats.Inputs)}
			for _, bound := range batch.Sizes {
				h.Bounds = append(h.Bounds, float64(bound))
			}
			e.Histogram(h, "batcher", batchers[i].name)
		}
		each("aiv_batch_seconds_total", "counter", "Time that batches took.", func(s *batch.Stats) float64 { return s.Time.Seconds() })
		each("aiv_batches_failed_total", "counter", "Batches that failed.", func(s *batch.Stats) float64 { return float64(s.Failed) })
		each("aiv_batches_retried_total", "counter", "Failed batches whose requests were then retried individually.",
			func(s *batch.Stats) float64 { return float64(s.Retried) })
		each("aiv_batch_overloaded_total", "counter", "Requests refused because too many waited.", func(s *batch.Stats) float64 { return float64(s.Overloaded) })
		each("aiv_batch_waiting", "gauge", "Requests that wait for the next batches.", func(s *batch.Stats) float64 { return float64(s.Waiting) })
	}
}

// pools are connection pools with their names.
type (
	pools     []namedPool
	namedPool struct {
		name string
		pool *pgxpool.Pool
	}
)

// writePools writes the state of the connections to the database.
func writePools(all pools) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		e.Family("aiv_pool_connections", "gauge", "Connections to the database, by pool and state.")
		for _, p := range all {
			s := p.pool.Stat()
			e.Sample(float64(s.AcquiredConns()), "pool", p.name, "state", "acquired")
			e.Sample(float64(s.IdleConns()), "pool", p.name, "state", "idle")
			e.Sample(float64(s.ConstructingConns()), "pool", p.name, "state", "connecting")
		}
		each := func(name, kind, help string, value func(*pgxpool.Stat) float64) {
			e.Family(name, kind, help)
			for _, p := range all {
				e.Sample(value(p.pool.Stat()), "pool", p.name)
			}
		}
		each("aiv_pool_max_connections", "gauge", "Maximum number of connections.",
			func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
		each("aiv_pool_connects_total", "counter", "Connections made.", func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) })
		each("aiv_pool_acquires_total", "counter", "Connections acquired from the pool.",
			func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) })
		each("aiv_pool_waits_total", "counter", "Acquires that waited because all connections were in use.",
			func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
		each("aiv_pool_wait_seconds_total", "counter", "Time spent in such waits.",
			func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
	}
}

// writeStandby writes metrics of the reads that a standby may serve.
func writeStandby(s *store.Standby) func(context.Context, *telemetry.Exposition) {
	return func(_ context.Context, e *telemetry.Exposition) {
		stats := s.Stats()
		e.Family("aiv_reads_total", "counter", "Reads of lists and results, by the server that they used.")
		e.Sample(float64(stats.Served), "server", "standby")
		e.Sample(float64(stats.FellBack), "server", "primary")
		e.Gauge("aiv_standby_current", "1 if reads use the standby; 0 if it is unreachable, behind or promoted.", oneIf(stats.Current))
		e.Gauge("aiv_standby_lag_seconds", "At the latest check, the time since the standby had all that the primary had.", stats.Lag.Seconds())
	}
}

// writeDatabase writes metrics that are read from the database, or only that it did not answer.
func writeDatabase(pool *pgxpool.Pool) func(context.Context, *telemetry.Exposition) {
	return func(ctx context.Context, e *telemetry.Exposition) {
		state, err := within(ctx, func(ctx context.Context) (databaseState, error) { return readDatabase(ctx, pool) })
		e.Family("aiv_database_up", "gauge", "1 if the database answered the queries for this page; if 0, the metrics read from it are missing.")
		if err != nil {
			e.Sample(0)
			return
		}
		e.Sample(1)
		e.Family("aiv_provider_dependency_unmet", "gauge", "1 if the dependency of the provider is not recorded as met, else 0.")
		for _, p := range state.providers {
			for _, d := range p.Dependencies {
				e.Sample(oneIf(!d.Met), "provider", p.Code, "dependency", d.Name)
			}
		}
		e.Gauge("aiv_keys_expiring", "Valid credentials without a successor that expire within 14 days; counted up to 10,000.",
			float64(len(state.expiring)))
		e.Gauge("aiv_queue_open_runs", "Runs that are queued or running, of all accounts; counted up to 10,000.", float64(state.backlog.Runs))
		e.Gauge("aiv_queue_oldest_seconds", "Age of the oldest of them; 0 if there is none.", state.backlog.Oldest.Seconds())
		e.Family("aiv_database_oldest_snapshot_transactions", "gauge",
			"Age in transactions of the oldest snapshot that keeps deleted rows from being removed, by its holder; 0 if there is none.")
		e.Sample(float64(state.health.Sessions), "holder", "session")
		e.Sample(float64(state.health.ReplicationSlots), "holder", "replication_slot")
		e.Sample(float64(state.health.PreparedTransactions), "holder", "prepared_transaction")
		e.Gauge("aiv_database_transaction_id_age",
			"Age of the oldest transaction id that is not frozen; at about 2.1 billion PostgreSQL refuses writes.", float64(state.health.TransactionIDs))
	}
}

// A databaseState is what writeDatabase reads.
type databaseState struct {
	providers []catalog.Provider
	expiring  []auth.Expiring
	backlog   runs.Backlog
	health    store.Health
}

// readDatabase reads what writeDatabase writes. The caller bounds its time.
func readDatabase(ctx context.Context, pool *pgxpool.Pool) (s databaseState, err error) {
	if s.providers, err = catalog.Providers(ctx, pool); err != nil {
		return s, err
	}
	if s.expiring, err = auth.ReadExpiring(ctx, pool, ExpirySoon, MaxCounted); err != nil {
		return s, err
	}
	if s.backlog, err = runs.ReadBacklog(ctx, pool, MaxCounted); err != nil {
		return s, err
	}
	s.health, err = store.ReadHealth(ctx, pool)
	return s, err
}

// oneIf returns the value of a sample that is 1 or 0.
func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
