package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"aiv/auth"
	"aiv/idempotency"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is a database with a customer. The tested processes do not use its pool.
type site struct {
	url        string
	pool       *pgxpool.Pool
	admin      *auth.Admin
	credential *auth.Credential
}

var sites storetest.Kept[*site]

// newSite returns a site that no other test uses, which may be one that an earlier test has used. A test that changes
// more than a few rows takes a new one by newSiteAt. The test runs beside others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	s := sites.Take(t, func(t testing.TB) *site { return newSiteAt(t, storetest.URL(t)) }, func(s *site) error {
		return storetest.Clear(s.pool, `job_arrivals job_queue measurement_runs measurement_run_models measurement_jobs usage_records
			idempotency_records account_months alerts credentials accounts audit_log`, "")
	})
	s.credential = s.customer(t)
	return s
}

// newProcess returns a site with a process.
func newProcess(t *testing.T) (*site, *runs.Runs) {
	t.Helper()
	s := newSite(t)
	return s, s.process(t, "")
}

// newSiteAt makes a site of an empty database.
func newSiteAt(t testing.TB, url string) *site {
	t.Helper()
	s := &site{url: url}
	s.pool = s.open(t, "")
	storetest.SetLockTimeout(t, s.pool, "60s")
	s.admin = &auth.Admin{Pool: s.pool, Actor: "test"}
	must(t, s.admin.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}}))
	s.credential = s.customer(t)
	return s
}

func (s *site) customer(t testing.TB) *auth.Credential {
	t.Helper()
	account, err := s.admin.CreateAccount(t.Context(), "customer", "plan")
	must(t, err)
	c, err := s.admin.CreateKey(t.Context(), account.ID, auth.Terms{Name: new("key")})
	must(t, err)
	return &auth.Credential{ID: c.ID, AccountID: account.ID}
}

func (s *site) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	must(t, ignore(s.pool.Exec(t.Context(), sql, args...)))
}

func (s *site) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// open returns a pool that only the test uses, with settings such as "&lock_timeout=1s".
func (s *site) open(t testing.TB, settings string) *pgxpool.Pool {
	t.Helper()
	return storetest.Open(t, s.url+settings, store.OpenHot, 6)
}

// checker is a function as a runs.Checker.
type checker func(*runs.Proposal) (string, error)

func (c checker) Check(_ context.Context, p *runs.Proposal) (string, error) { return c(p) }

// process returns a Runs with a new pool, as another process has.
func (s *site) process(t *testing.T, settings string) *runs.Runs {
	t.Helper()
	return newRuns(runs.Config{Pool: s.open(t, settings)})
}

// newRuns returns a Runs whose checks allow every run, unless the configuration has others.
func newRuns(c runs.Config) *runs.Runs {
	if c.Checks == nil {
		c.Checks = checker(func(*runs.Proposal) (string, error) { return "AIVM-1.0", nil })
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 10_000
	}
	c.NewID, c.Timeout = store.NewID, time.Minute
	return runs.New(c)
}

// request returns a request for models × questions × repetitions.
func (s *site) request(key string, models, questions int, repetitions int64) *runs.CreateRequest {
	return requestOf(s.credential, key, models, questions, repetitions)
}

// requestOf returns the same request of another customer.
func requestOf(c *auth.Credential, key string, models, questions int, repetitions int64) *runs.CreateRequest {
	list := func(name string, n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s-%d", name, i))
		}
		return ids
	}
	return &runs.CreateRequest{
		Proposal: &runs.Proposal{
			Orderer:  runs.OrdererOf(c),
			ModelIDs: list("model", models), QuestionIDs: list("question", questions), Repetitions: repetitions,
			MeasurementType: "grounded", Locale: "it-IT", Country: "IT", Language: "it",
		},
		Operation: idempotency.Operation{Method: "POST", Route: "/v1/runs"}, Key: key,
		Response: func(r *runs.Run) []byte { return []byte(r.ID.Text("run") + " " + r.Status) },
	}
}

// verify reports broken invariants: for instance, a run that lacks some of what is written with it.
func (s *site) verify(t *testing.T) {
	t.Helper()
	storetest.Verify(t, s.pool, slices.Concat(runs.Invariants(), idempotency.Invariants())...)
}

// wantRuns counts the runs in the database, and verifies it.
func (s *site) wantRuns(t *testing.T, want int) {
	t.Helper()
	s.verify(t)
	equal(t, want, s.count(t, `SELECT count(*) FROM measurement_runs`), "runs are written")
}

// create creates a run. It fails the test if the request is a replay.
func create(t *testing.T, r *runs.Runs, q *runs.CreateRequest) *runs.CreateResult {
	t.Helper()
	result, err := r.Create(t.Context(), q)
	must(t, err)
	equal(t, false, result.Replayed, q.Key, " is replayed")
	return result
}

// createAtOnce creates n runs at once.
func createAtOnce(t *testing.T, r *runs.Runs, n int, request func(i int) *runs.CreateRequest) {
	t.Helper()
	storetest.AtOnce(n, func(i int) {
		if _, err := r.Create(t.Context(), request(i)); err != nil {
			t.Error(err)
		}
	})
}

// goCreate sends a request in the background. The function that it returns waits for its error.
func goCreate(t *testing.T, r *runs.Runs, q *runs.CreateRequest) (wait func() error) {
	failed := make(chan error, 1)
	go func() { failed <- ignore(r.Create(t.Context(), q)) }()
	return func() error { return <-failed }
}

// fails fails the test unless a request fails with an error.
func fails(t *testing.T, r *runs.Runs, q *runs.CreateRequest, want error, what ...any) {
	t.Helper()
	if result, err := r.Create(t.Context(), q); !errors.Is(err, want) {
		t.Errorf("%s: got %v, %v, want %v", fmt.Sprint(what...), result, err, want)
	}
}

// refuses fails the test unless a request is refused because only so many jobs remain, of the quota or of the bound of
// unfinished jobs.
func refuses(t *testing.T, r *runs.Runs, q *runs.CreateRequest, remaining int64, unfinished bool) {
	t.Helper()
	_, err := r.Create(t.Context(), q)
	if e, ok := errors.AsType[*runs.QuotaError](err); !ok || e.Remaining != remaining || e.Unfinished != unfinished {
		t.Errorf("got %v, want that %d jobs remain, unfinished %t", err, remaining, unfinished)
	}
}

// replays fails the test unless the request replays the first result.
func replays(t *testing.T, r *runs.Runs, q *runs.CreateRequest, first *runs.CreateResult) {
	t.Helper()
	want := *first
	want.Replayed = true
	got, err := r.Create(t.Context(), q)
	must(t, err)
	equal(t, &want, got, "the replay")
}

// waiting waits until a statement waits for a lock of the given kind. It ignores the first wait of a batch, which ends
// after 100 ms, or 250 ms if it is for an account's month, and is repeated without that bound.
func (s *site) waiting(t *testing.T, lock string) {
	t.Helper()
	const longer = 300 * time.Millisecond
	time.Sleep(longer) // each poll costs a query
	storetest.UntilWaitingLonger(t, s.pool, lock, longer)
}

var must, equal, ignore = storetest.Must, storetest.Equal, storetest.Ignore

var begin = storetest.Begin
