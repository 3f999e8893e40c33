package runs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aiv/auth"
	"aiv/idempotency"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is a database with a customer. The tested processes do not use its pool.
type site struct {
	url        string
	pool       *pgxpool.Pool
	holders    []*pgxpool.Pool // of the rows of accounts
	admin      *auth.Admin
	credential *auth.Credential
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{url: storetest.URL(t)}
	s.pool = s.open(t, "")
	s.holders = storetest.Holders(t, s.pool)
	s.addGate(t)
	storetest.SetLockTimeout(t, s.pool, "60s")
	s.admin = &auth.Admin{Pool: s.pool, Actor: "test"}
	must(t, s.admin.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}}))
	s.credential = s.customer(t)
	return s
}

func (s *site) customer(t *testing.T) *auth.Credential {
	t.Helper()
	account, err := s.admin.CreateAccount(t.Context(), "customer", "plan")
	must(t, err)
	name := "key"
	c, err := s.admin.CreateKey(t.Context(), account.ID, auth.Terms{Name: &name})
	must(t, err)
	return &auth.Credential{ID: c.ID, AccountID: account.ID}
}

func (s *site) open(t *testing.T, settings string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.OpenHot(t.Context(), s.url+settings, 6)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// checker is a function as a runs.Checker.
type checker func(*runs.Proposal) (string, error)

func (c checker) Check(_ context.Context, p *runs.Proposal) (string, error) { return c(p) }

func always(*runs.Proposal) (string, error) { return "AIVM-1.0", nil }

// process returns a Runs with a new pool, as another process has.
func (s *site) process(t *testing.T, settings string, check checker) *runs.Runs {
	t.Helper()
	return runs.New(runs.Config{
		Pool: s.open(t, settings), Checks: check, NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 10_000,
	})
}

// request returns a request for models × questions × repetitions.
func (s *site) request(key string, models, questions int, repetitions int64) *runs.CreateRequest {
	list := func(name string, n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s-%d", name, i))
		}
		return ids
	}
	return &runs.CreateRequest{
		Proposal: &runs.Proposal{
			Orderer: runs.OrdererOf(s.credential), ModelIDs: list("model", models), QuestionIDs: list("question", questions), Repetitions: repetitions,
			MeasurementType: "grounded", Locale: "it-IT", Country: "IT", Language: "it",
		},
		Operation: idempotency.Operation{Kind: "POST", Name: "/v1/runs"}, Key: key,
		Answer: func(r *runs.Run) []byte { return []byte(r.ID.Text("run") + " " + r.Status) },
	}
}

// written counts the runs in the database. It fails the test if a run lacks some of what is written with it.
func (s *site) written(t *testing.T) (n int) {
	t.Helper()
	s.verify(t)
	must(t, s.pool.QueryRow(t.Context(), `SELECT count(*) FROM measurement_runs`).Scan(&n))
	return n
}

func (s *site) wantRuns(t *testing.T, want int) {
	t.Helper()
	if got := s.written(t); got != want {
		t.Errorf("%d runs are written, want %d", got, want)
	}
}

func create(t *testing.T, r *runs.Runs, o *runs.CreateRequest) *runs.CreateResult {
	t.Helper()
	result, err := r.Create(t.Context(), o)
	must(t, err)
	return result
}

// replays fails the test unless the request replays the first result.
func replays(t *testing.T, r *runs.Runs, o *runs.CreateRequest, first *runs.CreateResult) {
	t.Helper()
	want := *first
	want.Replayed = true
	if diff := cmp.Diff(&want, create(t, r, o)); diff != "" {
		t.Errorf("the replay (-want +got):\n%s", diff)
	}
}

// waiting waits until a statement waits for a lock of the given kind, and returns its process id. It ignores the first wait of a batch,
// which ends after 100 ms, or 250 ms if it is for an account's month, and is repeated without that bound.
func (s *site) waiting(t *testing.T, lock string) (pid int) {
	t.Helper()
	return storetest.UntilWaitingLonger(t, s.pool, lock, 300*time.Millisecond)
}

// addGate lets a test stop the writes of one account after they have claimed their keys.
func (s *site) addGate(t *testing.T) {
	t.Helper()
	for _, holder := range s.holders {
		sql := gate
		if storetest.OnCitus() {
			sql = "SET LOCAL citus.enable_ddl_propagation = off; " + gate
		}
		for _, table := range storetest.Pieces(t, holder, "usage_records") {
			sql += "CREATE TRIGGER gate BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION gate();"
		}
		_, err := holder.Exec(t.Context(), sql)
		must(t, err)
	}
}

const gate = `
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.account_id::text || COALESCE(TG_ARGV[0], '')));
  RETURN NEW;
END $$;`

// holdAccount closes the gate of the account.
func (s *site) holdAccount(t *testing.T) (release func()) {
	t.Helper()
	return s.hold(t, "")
}

// hold closes the gate of the account whose trigger has this argument.
func (s *site) hold(t *testing.T, gate string) (release func()) {
	t.Helper()
	var held []pgx.Tx
	for _, holder := range s.holders {
		tx, err := holder.Begin(t.Context())
		must(t, err)
		t.Cleanup(func() { tx.Rollback(context.Background()) })
		_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtext($1))`, s.credential.AccountID.UUID()+gate)
		must(t, err)
		held = append(held, tx)
	}
	return func() {
		for _, tx := range held {
			must(t, tx.Rollback(t.Context()))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
