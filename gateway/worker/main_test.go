package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/auth"
	"aiv/gateway/httpserver"
	"aiv/gateway/worker"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A site is a served interface, on a database with a provider, a model and questions q1 to q100, and the worker of a
// token.
type site struct {
	t      testing.TB
	pool   *pgxpool.Pool
	admin  *auth.Admin
	jobs   *jobs.Dispatcher
	server *httptest.Server
	worker auth.Worker
	token  string
}

// guessDelay is the delay of 401 responses.
const guessDelay = 50 * time.Millisecond

var databases storetest.Kept[*pgxpool.Pool]

// newSite returns a site that no other test uses. A test may change rows only.
func newSite(t testing.TB) *site {
	t.Helper()
	return siteOf(t, databases.Take(t, newDatabase, func(pool *pgxpool.Pool) error {
		return storetest.Clear(pool, `job_arrivals job_queue job_turns job_leases job_results job_attempts provider_throttles
			provider_minutes measurement_runs credentials accounts workers audit_log`, "")
	}))
}

func newDatabase(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := storetest.Hot(t)
	storetest.Exec(t, pool, `INSERT INTO plans (code, features) VALUES ('plan', '{api_access}')`,
		`INSERT INTO providers (code, name) VALUES ('p1', 'One')`,
		`INSERT INTO provider_dependencies (provider_code, dependency, met, note)
			SELECT code, d, true, 'test' FROM providers, unnest('{configuration,secret,contract,legal_approval}'::text[]) d`,
		`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
			VALUES ('m1', 'Model', 'p1', 'model-1', 'active', '{grounded}', true)`,
		`INSERT INTO questions (id, text, language, country, topic, tags, status)
			SELECT 'q' || n, 'Question "' || n || '"?', 'it', 'IT', 'topic', '{}', 'active' FROM generate_series(1, 100) n`)
	return pool
}

func siteOf(t testing.TB, pool *pgxpool.Pool) *site {
	s := &site{t: t, pool: pool, admin: &auth.Admin{Pool: pool, Actor: "test"}}
	s.worker, s.token = s.newWorker()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.jobs = jobs.New(jobs.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 1000})
	t.Cleanup(s.jobs.Stop)
	s.server = httptest.NewUnstartedServer(nil)
	s.server.Config = httpserver.New(s.handler(log), log)
	s.server.Config.ReadTimeout = storetest.Patience
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

func (s *site) handler(log *slog.Logger) *worker.Handler {
	return worker.New(worker.Config{
		Jobs: s.jobs, Workers: auth.NewWorkerLookup(s.pool, time.Minute, 1000), NewID: store.NewID,
		Timeout: time.Minute, Delay: guessDelay, Log: log, Metrics: worker.NewMetrics(),
	})
}

// newWorker returns a worker of all providers.
func (s *site) newWorker() (w auth.Worker, token string) {
	s.t.Helper()
	w, token, err := s.admin.CreateWorker(s.t.Context(), "worker", nil)
	must(s.t, err)
	return w, token
}

// revoke revokes the site's worker.
func (s *site) revoke() {
	s.t.Helper()
	_, err := s.admin.RevokeWorker(s.t.Context(), s.worker.ID)
	must(s.t, err)
}

// order creates a run of a new account.
func (s *site) order(questions, repetitions int) {
	s.t.Helper()
	account, run := store.NewID(), store.NewID()
	var b pgx.Batch
	b.Queue(`INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'account', 'plan')`, account)
	b.Queue(`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
		VALUES ($1, $1, 'key', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, account)
	b.Queue(`
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs)
  SELECT $1, $2, $1, 'grounded', 'AIVM-1.0', '{m1}', ARRAY(SELECT 'q' || n FROM generate_series(1, $3::integer) n),
    $4::integer, 'it-IT', 'IT', 'it', $3::integer * $4::integer
  RETURNING account_id, id
), arrival AS (`+jobs.EnqueueSQL+`) SELECT count(*) FROM run`, account, run, questions, repetitions)
	must(s.t, s.pool.SendBatch(s.t.Context(), &b).Close())
}

// A reply is a response with its body decoded.
type reply struct {
	status int
	header http.Header
	body   struct {
		Code string
		Jobs []map[string]any
	}
	raw string
}

// post sends JSON with the site's token.
func (s *site) post(route, body string) reply {
	s.t.Helper()
	return s.send("POST", worker.Base+"/"+route, body, "Authorization", "Bearer "+s.token, "Content-Type", "application/json")
}

func (s *site) send(method, path, body string, header ...string) reply {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(body))
	must(s.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := s.server.Client().Do(r)
	must(s.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(s.t, err)
	out := reply{status: resp.StatusCode, header: resp.Header, raw: string(b)}
	must(s.t, json.Unmarshal(b, &out.body))
	return out
}

// run runs the dispatcher's tasks. Waiting claims end with it.
func (s *site) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var done sync.WaitGroup
	done.Go(func() { task.NewRunner(slog.New(slog.DiscardHandler), s.jobs.Tasks()).Run(ctx) })
	s.t.Cleanup(func() { cancel(); done.Wait(); s.jobs.Stop() })
}

// waiting returns when so many claims wait.
func (s *site) waiting(n int) {
	s.t.Helper()
	storetest.Eventually(s.t, fmt.Sprintf("%d claims wait", n), func() bool { return s.jobs.Stats().Waiting == n })
}

// aClaim is the body of a claim of so many jobs.
func aClaim(limit, wait int) string {
	return fmt.Sprintf(`{"limit":%d,"lease_seconds":60,"providers":null,"wait_seconds":%d}`, limit, wait)
}

// claim claims jobs and returns them.
func (s *site) claim(limit int) []map[string]any {
	s.t.Helper()
	r := s.post("claim", aClaim(limit, 0))
	if r.status != 200 {
		s.t.Fatalf("%d %s", r.status, r.raw)
	}
	return r.body.Jobs
}

var must = storetest.Must
