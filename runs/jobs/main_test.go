package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"aiv/runs"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is a database with providers p1 and p2, models m1 and m3 of p1 and m2 of p2, and questions q1 to q100.
type site struct {
	url  string
	pool *pgxpool.Pool
}

var sites storetest.Kept[*site]

// newSite returns a site that no other test uses, which may be one that an earlier test has used. A test that changes
// more than rows takes a new one by newSiteAt. When the test ends, the site is checked.
func newSite(t testing.TB) *site {
	t.Helper()
	create := func(t testing.TB) *site { return newSiteAt(t, storetest.URL(t)) }
	s := sites.Take(t, create, func(s *site) error {
		return storetest.Clear(s.pool, `job_arrivals job_queue job_turns job_leases job_results job_attempts
			provider_settings provider_pauses provider_throttles provider_minutes measurement_runs credentials accounts workers audit_log`,
			`UPDATE provider_dependencies SET met = true WHERE NOT met`)
	})
	t.Cleanup(func() { s.check(t) })
	return s
}

// start returns a site that no other test uses, and a Dispatcher of it.
func start(t testing.TB) (*site, *jobs.Dispatcher) {
	t.Helper()
	s := newSite(t)
	return s, s.dispatcher(t)
}

// newSiteAt makes a site of an empty database.
func newSiteAt(t testing.TB, url string) *site {
	t.Helper()
	s := &site{url: url}
	s.pool = s.open(t)
	s.exec(t, `
INSERT INTO plans (code, features) VALUES ('plan', '{api_access}');
INSERT INTO providers (code, name) VALUES ('p1', 'One'), ('p2', 'Two');
INSERT INTO provider_dependencies (provider_code, dependency, met, note)
  SELECT code, d, true, 'test' FROM providers, unnest('{configuration,secret,contract,legal_approval}'::text[]) d;
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
  SELECT 'm' || n, 'Model', CASE n WHEN 2 THEN 'p2' ELSE 'p1' END, 'model-' || n, 'active', '{grounded}', true FROM generate_series(1, 3) n;
INSERT INTO questions (id, text, language, country, topic, tags, status)
  SELECT 'q' || n, 'Question ' || n || '?', 'it', 'IT', 'topic', '{}', 'active' FROM generate_series(1, 100) n`)
	return s
}

func (s *site) open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := store.OpenHot(t.Context(), s.url, 8)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (s *site) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	mode := pgx.QueryExecModeSimpleProtocol
	if len(args) > 0 {
		mode = pgx.QueryExecModeCacheStatement
	}
	must(t, ignore(s.pool.Exec(t.Context(), sql, append([]any{mode}, args...)...)))
}

func (s *site) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// account returns a new account.
func (s *site) account(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	s.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'account', 'plan')`, id)
	s.exec(t, `INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
		VALUES ($1, $1, 'key', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, id)
	return id
}

// worker returns a new worker with a token.
func (s *site) worker(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	s.exec(t, `INSERT INTO workers (id, name, token_hash) VALUES ($1, 'worker', sha256(uuid_send($1)))`, id)
	return id
}

// createRun creates a run and returns its id.
func (s *site) createRun(t testing.TB, account store.ID, models []string, questions, repetitions int) store.ID {
	t.Helper()
	id := store.NewID()
	s.exec(t, `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs)
  SELECT $1, $2, $1, 'grounded', 'AIVM-1.0', $3, ARRAY(SELECT 'q' || n FROM generate_series(1, $4::integer) n), $5::integer, 'it-IT', 'IT', 'it',
    cardinality($3::text[]) * $4::integer * $5::integer
  RETURNING account_id, id
), arrival AS (`+jobs.EnqueueSQL+`) SELECT count(*) FROM run`, account, id, models, questions, repetitions)
	return id
}

// dispatcher returns a Dispatcher whose batches wait for locks until the test releases them, however slow the machine
// is.
func (s *site) dispatcher(t testing.TB) *jobs.Dispatcher {
	t.Helper()
	d := jobs.New(jobs.Config{
		Pool: s.pool, Timeout: time.Minute, MaxWaiting: 1000, LockWait: "1min", Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(d.Stop)
	return d
}

// A run as the table has it.
type runRow struct {
	Status                                      string
	Total, Running, Completed, Failed, Canceled int
	Started, Finished                           bool
}

func (s *site) run(t testing.TB, id store.ID) (r runRow) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), `
SELECT status, total_jobs, `+runs.RunningJobs("r.account_id")+`, jobs_completed, jobs_failed, jobs_canceled, started_at IS NOT NULL, finished_at IS NOT NULL
FROM measurement_runs r WHERE id = $1`, id).Scan(&r.Status, &r.Total, &r.Running, &r.Completed, &r.Failed, &r.Canceled, &r.Started, &r.Finished))
	return r
}

// cancel cancels a run as package runs does.
func (s *site) cancel(t testing.TB, id store.ID) {
	t.Helper()
	var account store.ID
	must(t, s.pool.QueryRow(t.Context(), `SELECT account_id FROM measurement_runs WHERE id = $1`, id).Scan(&account))
	s.exec(t, `SELECT cancel_run($1, $2)`, account, id)
}

// check fails the test unless counters equal rows and each job is in one row.
func (s *site) check(t testing.TB) {
	t.Helper()
	violations, err := store.Verify(context.WithoutCancel(t.Context()), s.pool, jobs.Invariants())
	must(t, err)
	for _, v := range violations {
		t.Errorf("%s: %s", v.Invariant.Doc, v.Rows)
	}
}

// setLimits sets both limits of a provider, nil for none.
func (s *site) setLimits(t testing.TB, provider string, perMinute, inFlight *int) {
	t.Helper()
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "test"}
	must(t, admin.SetLimits(t.Context(), provider, jobs.ProviderLimits{
		PerMinute: jobs.ProviderLimit{Set: true, Value: perMinute}, InFlight: jobs.ProviderLimit{Set: true, Value: inFlight},
	}))
}

func claim(t testing.TB, d *jobs.Dispatcher, limit int, providers ...string) []jobs.Job {
	t.Helper()
	got, err := d.Claim(t.Context(), &jobs.ClaimRequest{Worker: store.NewID(), Providers: providers, Limit: limit, Lease: time.Minute})
	must(t, err)
	return got
}

// claimed is what a claim returned.
type claimed struct {
	jobs []jobs.Job
	err  error
}

// goClaim claims in the background.
func goClaim(ctx context.Context, d *jobs.Dispatcher, r *jobs.ClaimRequest) <-chan claimed {
	c := make(chan claimed, 1)
	go func() {
		got, err := d.Claim(ctx, r)
		c <- claimed{got, err}
	}()
	return c
}

// place is what a job asks: its model, question and repetition.
func place(j jobs.Job) string {
	return fmt.Sprint(j.Parameters.ModelID, " ", j.Question.ID, " ", j.Repetition)
}

// placeOf is the place of a job of a run as createRun makes it.
func placeOf(models []string, questions, repetitions int, ordinal int32) string {
	at := int(ordinal) - 1
	return fmt.Sprint(models[at/(questions*repetitions)], " q", at/repetitions%questions+1, " ", at%repetitions+1)
}

// settle settles jobs with one outcome and returns their states, one after the other.
func settle(t testing.TB, d *jobs.Dispatcher, o jobs.Outcome, claimed ...jobs.Job) (states []string) {
	t.Helper()
	var s []jobs.Settlement
	for _, j := range claimed {
		s = append(s, settlement(j, o))
	}
	return settleAs(t, d, jobs.Reporter{}, s...)
}

// settleAs settles jobs as a worker and returns their states.
func settleAs(t testing.TB, d *jobs.Dispatcher, from jobs.Reporter, all ...jobs.Settlement) (states []string) {
	t.Helper()
	replies, err := d.Settle(t.Context(), from, all)
	must(t, err)
	for _, r := range replies {
		states = append(states, r.State)
	}
	return states
}

func settlement(j jobs.Job, o jobs.Outcome) jobs.Settlement {
	s := jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: o}
	switch o {
	case jobs.Completed:
		s.Answer = &answers.Answer{Text: j.Key.String()}
	case jobs.Failed, jobs.Retry:
		s.ErrorCode, s.ErrorMessage = "code", "message"
	}
	return s
}

// pass moves all times of leases and throttles into the past, as if so much time had passed.
func (s *site) pass(t testing.TB, d time.Duration) {
	t.Helper()
	for _, table := range []string{"job_leases", "provider_throttles"} {
		s.exec(t, `UPDATE `+table+` SET until = to_timestamp(extract(epoch FROM until - to_timestamp(0))::double precision - $1)`, d.Seconds())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal reports a difference between two values, which what describes.
func equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

func ignore(_ any, err error) error { return err }

// notOnCitus skips a test that says nothing about a cluster.
func notOnCitus(t *testing.T, why string) {
	t.Helper()
	if storetest.OnCitus() {
		t.Skip(why)
	}
}

func sweep(t testing.TB, d *jobs.Dispatcher) {
	t.Helper()
	must(t, ignore(d.Sweep(t.Context())))
}

// begin executes a statement in a transaction that the test ends.
func begin(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	must(t, ignore(tx.Exec(t.Context(), sql, args...)))
	return tx
}
