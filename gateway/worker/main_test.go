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

// site is a served interface, on a database with a provider, a model and three questions.
type site struct {
	pool   *pgxpool.Pool
	admin  *auth.Admin
	jobs   *jobs.Dispatcher
	server *httptest.Server
	token  string
}

// guessDelay is the delay of 401 responses.
const guessDelay = 50 * time.Millisecond

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{pool: storetest.Hot(t)}
	s.exec(t, `
INSERT INTO plans (code, features) VALUES ('plan', '{api_access}');
INSERT INTO providers (code, name) VALUES ('p1', 'One'), ('p2', 'Two');
INSERT INTO provider_dependencies (provider_code, dependency, met, note)
  SELECT code, d, true, 'test' FROM providers, unnest('{configuration,secret,contract,legal_approval}'::text[]) d;
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
  VALUES ('m1', 'Model', 'p1', 'model-1', 'active', '{grounded}', true);
INSERT INTO questions (id, text, language, country, topic, tags, status)
  SELECT 'q' || n, 'Question "' || n || '"?', 'it', 'IT', 'topic', '{}', 'active' FROM generate_series(1, 100) n`)
	s.admin = &auth.Admin{Pool: s.pool, Actor: "test"}
	s.token = s.worker(t)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.jobs = jobs.New(jobs.Config{Pool: s.pool, Timeout: 20 * time.Second, MaxWaiting: 1000, Log: log})
	t.Cleanup(s.jobs.Stop)
	s.server = httptest.NewUnstartedServer(nil)
	s.server.Config = httpserver.New(worker.New(worker.Config{Jobs: s.jobs, Workers: auth.NewWorkerLookup(s.pool, 20*time.Second, 1000), NewID: store.NewID, Timeout: 20 * time.Second, Delay: guessDelay,
		Log: log, Metrics: worker.NewMetrics()}), log)
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

func (s *site) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	mode := pgx.QueryExecModeSimpleProtocol
	if len(args) > 0 {
		mode = pgx.QueryExecModeCacheStatement
	}
	_, err := s.pool.Exec(t.Context(), sql, append([]any{mode}, args...)...)
	must(t, err)
}

func (s *site) worker(t testing.TB, providers ...string) (token string) {
	t.Helper()
	_, token, err := s.admin.CreateWorker(t.Context(), "worker", providers)
	must(t, err)
	return token
}

// createRun creates a run of a new account.
func (s *site) createRun(t testing.TB, questions, repetitions int) (account, run store.ID) {
	t.Helper()
	account, run = store.NewID(), store.NewID()
	s.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'account', 'plan')`, account)
	s.exec(t, `INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
		VALUES ($1, $1, 'key', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, account)
	s.exec(t, `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs)
  SELECT $1, $2, $1, 'grounded', 'AIVM-1.0', '{m1}', ARRAY(SELECT 'q' || n FROM generate_series(1, $3::integer) n), $4::integer, 'it-IT', 'IT', 'it',
    $3::integer * $4::integer
  RETURNING account_id, id
), arrival AS (`+jobs.EnqueueSQL+`) SELECT count(*) FROM run`, account, run, questions, repetitions)
	return account, run
}

// A reply is a response with its body decoded.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

// post sends a body, which may be text or what is encoded as JSON.
func (s *site) post(t testing.TB, route string, body any) reply {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		must(t, err)
		text = string(b)
	}
	return s.send(t, "POST", worker.Base+"/"+route, text, "Authorization", "Bearer "+s.token, "Content-Type", "application/json")
}

func (s *site) send(t testing.TB, method, path, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.server.URL+path, strings.NewReader(body))
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := s.server.Client().Do(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	out := reply{status: resp.StatusCode, header: resp.Header, raw: string(b)}
	if err := json.Unmarshal(b, &out.body); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return out
}

// run runs the dispatcher's tasks. Waiting claims end with it.
func (s *site) run(t testing.TB) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { task.NewRunner(slog.New(slog.DiscardHandler), s.jobs.Tasks()).Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait(); s.jobs.Stop() })
}

// waiting returns when so many claims wait.
func (s *site) waiting(t testing.TB, n int) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("%d claims wait", n), func() bool { return s.jobs.Stats().Waiting == n })
}

// claim claims jobs and returns them.
func (s *site) claim(t testing.TB, limit int) (claimed []map[string]any) {
	t.Helper()
	r := s.post(t, "claim", map[string]any{"limit": limit, "lease_seconds": 60, "providers": nil, "wait_seconds": 0})
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	for _, j := range r.body["jobs"].([]any) {
		claimed = append(claimed, j.(map[string]any))
	}
	return claimed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
