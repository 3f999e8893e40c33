package jobs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/runs"
	"aiv/runs/answers"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A site is a database with providers p1 and p2, models m1 and m3 of p1 and m2 of p2, and questions q1 to q100.
type site struct {
	*database
	t testing.TB
	d *Dispatcher // its batches wait for locks until the test releases them, however slow the machine is
}

type database struct {
	url  string
	pool *pgxpool.Pool
}

var databases storetest.Kept[*database]

// newSite returns a site that no other test uses, which may be one that an earlier test has used. A test that changes
// more than rows takes an ownSite. The test becomes parallel. When it ends, the site is checked.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	create := func(t testing.TB) *database { return ownSite(t).database }
	db := databases.Take(t, create, func(db *database) error {
		return storetest.Clear(db.pool, `job_arrivals job_queue job_turns job_leases job_results job_attempts
			provider_settings provider_pauses provider_throttles provider_minutes measurement_runs credentials accounts
			workers audit_log`, `UPDATE provider_dependencies SET met = true WHERE NOT met`)
	})
	s := &site{database: db, t: t}
	s.d = s.dispatcher(Config{LockWait: "1min"})
	t.Cleanup(s.check)
	return s
}

// ownSite returns a site that is not used by another test.
func ownSite(t testing.TB) *site {
	t.Helper()
	return siteAt(t, storetest.URL(t))
}

// siteAt makes a site of an empty database.
func siteAt(t testing.TB, url string) *site {
	t.Helper()
	s := &site{database: &database{url: url}, t: t}
	s.pool = s.open("")
	s.d = s.dispatcher(Config{LockWait: "1min"})
	s.exec(`
INSERT INTO plans (code, features) VALUES ('plan', '{api_access}');
INSERT INTO providers (code, name) VALUES ('p1', 'One'), ('p2', 'Two');
INSERT INTO provider_dependencies (provider_code, dependency, met, note)
  SELECT code, d, true, 'test' FROM providers, unnest('{configuration,secret,contract,legal_approval}'::text[]) d;
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
  SELECT 'm' || n, 'Model', CASE n WHEN 2 THEN 'p2' ELSE 'p1' END, 'model-' || n, 'active', '{grounded}', true
  FROM generate_series(1, 3) n;
INSERT INTO questions (id, text, language, country, topic, tags, status)
  SELECT 'q' || n, 'Question ' || n || '?', 'it', 'IT', 'topic', '{}', 'active' FROM generate_series(1, 100) n`)
	return s
}

// open returns a pool with settings such as "&lock_timeout=1s".
func (s *site) open(settings string) *pgxpool.Pool {
	s.t.Helper()
	return storetest.Open(s.t, s.url+settings, store.OpenHot, 8)
}

// dispatcher returns a Dispatcher. What cfg leaves out has a default.
func (s *site) dispatcher(cfg Config) *Dispatcher {
	cfg.Pool, cfg.Timeout, cfg.MaxWaiting = cmp.Or(cfg.Pool, s.pool), cmp.Or(cfg.Timeout, time.Minute), 1000
	d := New(cfg)
	s.t.Cleanup(d.Stop)
	return d
}

// on returns the site with another Dispatcher.
func (s *site) on(d *Dispatcher) *site { return &site{s.database, s.t, d} }

// process returns the site with the Dispatcher of another process, which runs its tasks.
func (s *site) process() *site {
	s.t.Helper()
	d := s.dispatcher(Config{Pool: s.open("")})
	ctx, cancel := context.WithCancel(s.t.Context())
	var done sync.WaitGroup
	done.Go(func() { task.NewRunner(slog.New(slog.DiscardHandler), d.Tasks()).Run(ctx) })
	s.t.Cleanup(func() { cancel(); done.Wait(); d.Stop() })
	return s.on(d)
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	must(s.t, ignore(s.pool.Exec(s.t.Context(), sql, args...)))
}

func (s *site) count(sql string, args ...any) int {
	s.t.Helper()
	return storetest.Value[int](s.t, s.pool, sql, args...)
}

// rows returns how many rows tables have together.
func (s *site) rows(tables ...string) (n int) {
	s.t.Helper()
	for _, table := range tables {
		n += s.count(`SELECT count(*) FROM ` + table)
	}
	return n
}

// account returns a new account.
func (s *site) account() store.ID {
	s.t.Helper()
	id := store.NewID()
	s.exec(`INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'account', 'plan')`, id)
	s.exec(`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
		VALUES ($1, $1, 'key', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, id)
	return id
}

// order creates a run of n jobs of m1, of a new account.
func (s *site) order(n int) (run store.ID) {
	s.t.Helper()
	return s.orderOf(s.account(), "m1", n, 1)
}

// orderOf creates a run of models, such as "m1 m2".
func (s *site) orderOf(account store.ID, models string, questions, repetitions int) (run store.ID) {
	s.t.Helper()
	run = store.NewID()
	s.exec(insertRuns("$1", "$2", ""), account, run, strings.Fields(models), questions, repetitions)
	return run
}

// insertRuns returns a statement that inserts runs of the models $3, with $4 questions and $5 repetitions.
func insertRuns(account, run, from string) string {
	return `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs)
  SELECT ` + account + `::uuid, ` + run + `::uuid, ` + account + `::uuid, 'grounded', 'AIVM-1.0', $3,
    ARRAY(SELECT 'q' || n FROM generate_series(1, $4::integer) n), $5::integer, 'it-IT', 'IT', 'it',
    cardinality($3::text[]) * $4::integer * $5::integer
  ` + from + `
  RETURNING account_id, id
), arrival AS (` + EnqueueSQL + `) SELECT count(*) FROM run`
}

// state returns the row of a run, such as "running: 2 of 3 jobs running, 1 completed, 0 failed, 0 canceled".
func (s *site) state(run store.ID) string {
	s.t.Helper()
	return storetest.Value[string](s.t, s.pool, `
SELECT concat(
  format('%s: %s of %s jobs running, %s completed, %s failed, %s canceled', status,
    `+runs.RunningJobs("r.account_id")+`, total_jobs, jobs_completed, jobs_failed, jobs_canceled),
  CASE WHEN (started_at IS NULL) <> (status = 'queued') THEN format(', started: %s', started_at) END,
  CASE WHEN (finished_at IS NULL) <> (status IN ('queued', 'running')) THEN format(', finished: %s', finished_at) END)
FROM measurement_runs r WHERE id = $1`, run)
}

// cancel cancels a run as package runs does.
func (s *site) cancel(run store.ID) {
	s.t.Helper()
	account := storetest.Value[store.ID](s.t, s.pool, `SELECT account_id FROM measurement_runs WHERE id = $1`, run)
	s.exec(`SELECT cancel_run($1, $2)`, account, run)
}

// check fails the test unless counters equal rows and each job is in one row.
func (s *site) check() {
	s.t.Helper()
	storetest.Verify(s.t, s.pool, Invariants()...)
}

func (s *site) admin() *ProviderAdmin { return &ProviderAdmin{Pool: s.pool, Actor: "op"} }

// limit sets both limits of a provider, nil for none.
func (s *site) limit(provider string, perMinute, inFlight *int) {
	s.t.Helper()
	limits := ProviderLimits{PerMinute: ProviderLimit{true, perMinute}, InFlight: ProviderLimit{true, inFlight}}
	must(s.t, s.admin().SetLimits(s.t.Context(), provider, limits))
}

// pass moves all times of leases and throttles into the past, as if so much time had passed.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	for _, table := range []string{"job_leases", "provider_throttles"} {
		// Citus refuses functions that depend on the session's time zone, such as extract of until.
		s.exec(`UPDATE `+table+`
SET until = to_timestamp(extract(epoch FROM until - to_timestamp(0))::double precision - $1)`, d.Seconds())
	}
}

func (s *site) sweep() {
	s.t.Helper()
	must(s.t, ignore(s.d.Sweep(s.t.Context())))
}

// claim claims up to so many jobs for a minute.
func (s *site) claim(limit int, providers ...string) []Job {
	s.t.Helper()
	jobs, err := s.d.Claim(s.t.Context(), request(ClaimRequest{Limit: limit, Providers: providers}))
	must(s.t, err)
	return jobs
}

// request returns a claim. What r leaves out has a default: a worker, one job and a lease of a minute.
func request(r ClaimRequest) *ClaimRequest {
	if r.Worker == (store.ID{}) {
		r.Worker = store.NewID()
	}
	r.Limit, r.Lease = cmp.Or(r.Limit, 1), cmp.Or(r.Lease, time.Minute)
	return &r
}

// goClaim claims in the background. The function that it returns waits for the end.
func (s *site) goClaim(r ClaimRequest) func() ([]Job, error) {
	var jobs []Job
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		jobs, err = s.d.Claim(s.t.Context(), request(r))
	}()
	return func() ([]Job, error) { <-ended; return jobs, err }
}

// place is what a job asks: its model, question and repetition.
func place(j Job) string {
	return fmt.Sprint(j.Parameters.ModelID, " ", j.Question.ID, " ", j.Repetition)
}

// settlement returns the end of an attempt. Retried and throttled jobs wait for the time after, or for the default.
func settlement(j Job, o Outcome, after ...time.Duration) Settlement {
	s := Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: o, After: cmp.Or(after...)}
	switch o {
	case Completed:
		s.Answer = &answers.Answer{Text: j.Key.String()}
	case Failed, Retry:
		s.ErrorCode, s.ErrorMessage = "code", "message"
	case Unavailable:
		s.ErrorCode, s.ErrorMessage = "secret", "message"
	}
	return s
}

// settle settles jobs with one outcome and returns their states, such as "settled stale".
func (s *site) settle(o Outcome, jobs ...Job) (states string) {
	s.t.Helper()
	var all []Settlement
	for _, j := range jobs {
		all = append(all, settlement(j, o))
	}
	return s.report(Reporter{}, all...)
}

// report settles jobs as a worker and returns their states.
func (s *site) report(from Reporter, all ...Settlement) (states string) {
	s.t.Helper()
	replies, err := s.d.Settle(s.t.Context(), from, all)
	must(s.t, err)
	return statesOf(replies)
}

// renew renews the leases of jobs and returns their states.
func (s *site) renew(lease time.Duration, jobs ...Job) (states string) {
	s.t.Helper()
	var renewals []Renewal
	for _, j := range jobs {
		renewals = append(renewals, Renewal{j.Key, j.Attempt})
	}
	replies, err := s.d.Renew(s.t.Context(), Reporter{}, lease, renewals)
	must(s.t, err)
	return statesOf(replies)
}

func statesOf(replies []Reply) string {
	var states []string
	for _, r := range replies {
		states = append(states, r.State)
	}
	return strings.Join(states, " ")
}

var must, equal, ignore = storetest.Must, storetest.Equal, storetest.Ignore
