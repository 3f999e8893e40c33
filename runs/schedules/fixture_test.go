package schedules_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"aiv/auth"
	"aiv/cmd/aiv/capability"
	"aiv/gateway"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must, equal, ignore = storetest.Must, storetest.Equal, storetest.Ignore

// A database is handed from test to test. Its sessions have the clock of the site. Sessions of the pool dispatch have the
// role of aiv dispatch.
type database struct{ pool, dispatch *pgxpool.Pool }

var databases storetest.Kept[*database]

func newDatabase(t testing.TB) *database {
	t.Helper()
	d := &database{pool: storetest.WithClockAhead(t, storetest.Hot(t), 0)}
	if d.dispatch = d.pool; storetest.OnCitus() {
		return d // other servers would not let the role read the clock
	}
	name, role := storetest.NewRole(t, d.pool, "_dispatch")
	must(t, schema.Grant(t.Context(), d.pool, capability.All, schema.Dispatch, name, "test"))
	storetest.Exec(t, d.pool, "GRANT USAGE ON SCHEMA clock TO "+role, "GRANT SELECT ON clock.ahead TO "+role)
	config := d.pool.Config()
	config.ConnConfig.RuntimeParams["role"] = name
	var err error
	d.dispatch, err = pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(d.dispatch.Close)
	return d
}

// site is a database with an account.
type site struct {
	*database
	admin      *auth.Admin
	account    store.ID
	credential store.ID
	schedules  *schedules.Schedules
	process    *schedules.Scheduler
	check      func(*runs.Proposal) error // refuses runs; nil: none
	ahead      time.Duration
}

// newSite returns a site that no other test uses, which may be one that an earlier test has used. A test may change rows
// only. It runs beside others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return siteOf(t, databases.Take(t, newDatabase, func(d *database) error {
		storetest.CloseMost(d.dispatch)
		return storetest.Clear(d.pool, `schedules schedule_occurrences schedule_accounts job_arrivals measurement_runs
			measurement_run_models measurement_jobs usage_records idempotency_records account_months alerts recommendations events
			visibility_facts visibility_backlog visibility_recounts brands brand_revisions questions webhook_queues credentials
			accounts plans audit_log`, "")
	}))
}

func siteOf(t *testing.T, d *database) *site {
	t.Helper()
	s := &site{database: d, admin: &auth.Admin{Pool: d.pool, Actor: "test"}, schedules: schedules.New(config(d.pool))}
	s.advance(t, 0)
	must(t, s.admin.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}}))
	must(t, s.admin.SetPlan(t.Context(), auth.Plan{Code: "none", Features: []string{}}))
	s.account, s.credential = s.customer(t)
	s.process = s.another()
	return s
}

// advance moves the clock.
func (s *site) advance(t *testing.T, by time.Duration) {
	t.Helper()
	s.ahead += by
	storetest.SetClockAhead(t, s.pool, s.ahead)
}

func (s *site) customer(t *testing.T) (account, credential store.ID) {
	t.Helper()
	a, err := s.admin.CreateAccount(t.Context(), "customer", "plan")
	must(t, err)
	c, err := s.admin.CreateKey(t.Context(), a.ID, auth.Terms{Name: new("key"), Scopes: auth.Scopes})
	must(t, err)
	return a.ID, c.ID
}

func config(pool *pgxpool.Pool) schedules.Config {
	return schedules.Config{Pool: pool, NewID: store.NewID, Record: webhooks.Record, Events: gateway.EventData{}}
}

// Check implements runs.Checker.
func (s *site) Check(_ context.Context, p *runs.Proposal) (string, error) {
	if s.check != nil {
		return "AIVM-1.0", s.check(p)
	}
	return "AIVM-1.0", nil
}

// another returns the Scheduler of another process.
func (s *site) another() *schedules.Scheduler { return s.schedulerOf(config(s.dispatch)) }

func (s *site) schedulerOf(c schedules.Config) *schedules.Scheduler {
	writer := runs.New(runs.Config{Pool: c.Pool, Checks: s, NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 1000, Enqueue: jobs.EnqueueSQL})
	return schedules.NewScheduler(schedules.SchedulerConfig{
		Config: c, Runs: writer, Log: slog.New(slog.DiscardHandler), Derived: gateway.EventData{},
		Response: func(r *runs.Run) []byte { return []byte(r.ID.Text("run")) },
	})
}

func (s *site) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	must(t, ignore(s.pool.Exec(t.Context(), sql, args...)))
}

func (s *site) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	return storetest.Value[int](t, s.pool, sql, args...)
}

// change returns the members of a new schedule. Its due times, at this minute of an hour or of the first one of a day,
// are at least half an hour from now.
func change(name, cadence string) schedules.Change {
	return schedules.Change{
		Name: &name, Cadence: &cadence, At: new((time.Now().Minute() + 30) % 60), Zone: new("UTC"), MinChange: new(schedules.DefaultMinChange),
		Run: &schedules.RunTerms{ModelIDs: []string{"m-1", "m-2"}, QuestionIDs: []string{"q-1"}, Repetitions: 3, MeasurementType: "grounded",
			Locale: "it-IT", Country: "IT", Language: "it"},
	}
}

func (s *site) create(t *testing.T, c schedules.Change) *schedules.Listed {
	t.Helper()
	made, err := s.schedules.Create(t.Context(), s.account, s.credential, c)
	must(t, err)
	return made
}

// due sets the next due time of a schedule.
func (s *site) due(t *testing.T, id store.ID, at time.Time) {
	t.Helper()
	s.exec(t, `UPDATE schedules SET next_at = $2 WHERE id = $1`, id, at)
}

func (s *site) get(t *testing.T, id store.ID) *schedules.Listed {
	t.Helper()
	found, err := schedules.Get(t.Context(), s.pool, s.account, id)
	must(t, err)
	return found
}

// occurrences returns all occurrences of a schedule, latest first.
func (s *site) occurrences(t *testing.T, id store.ID) []schedules.Occurrence {
	t.Helper()
	found, err := schedules.Occurrences(t.Context(), s.pool, s.account, id, "", store.Page{Limit: 1000})
	must(t, err)
	return found
}

// cancel cancels a run.
func (s *site) cancel(t *testing.T, run *store.ID) {
	t.Helper()
	writer := runs.New(runs.Config{Pool: s.pool, NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 10})
	must(t, ignore(writer.Cancel(t.Context(), s.account, *run)))
}

// events returns the data of the account's events of a type, oldest first.
func (s *site) events(t *testing.T, eventType string) []string {
	t.Helper()
	return storetest.Value[[]string](t, s.pool, `
SELECT COALESCE(array_agg(data::text ORDER BY created_at, id), '{}') FROM events WHERE account_id = $1 AND type = $2`, s.account, eventType)
}

// past writes occurrences of all schedules, n units before now for each n. Every so manyth of them was skipped.
func (s *site) past(t *testing.T, first, last int, unit string, every int) {
	t.Helper()
	s.exec(t, `
INSERT INTO schedule_occurrences (account_id, schedule_id, due_at, last_due_at, count, status, code, detail, created_at)
SELECT account_id, id, at, at, 1, x.status, CASE x.status WHEN 'skipped' THEN 'overlap' END, CASE x.status WHEN 'skipped' THEN '' END, at
FROM schedules, generate_series($1::integer, $2) n, LATERAL (
  SELECT date_trunc('hour', now()) - n * $3::interval AS at, CASE WHEN n % $4 = 0 THEN 'skipped' ELSE 'created' END AS status) x`,
		first, last, unit, every)
}

// verify checks the invariants of schedules and of runs.
func (s *site) verify(t *testing.T) {
	t.Helper()
	storetest.Verify(t, s.pool, slices.Concat(schedules.Invariants(), runs.Invariants())...)
}
