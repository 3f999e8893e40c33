package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A fleet is workers that claim and settle until there is nothing left, through a dispatcher that is replaced again and again.
type fleet struct {
	t        *testing.T
	dispatch atomic.Pointer[process]
	token    string
	over     atomic.Bool // claims that find nothing end their worker
	deaths   atomic.Int64

	mu      sync.Mutex
	settled map[string]int // the attempts that were acknowledged, by job
	twice   []string       // jobs of which two attempts were acknowledged
}

// work is a worker. Some of its claims are forgotten, as if it had been killed.
func (f *fleet) work(forget float64) {
	for {
		w := &workerClient{f.dispatch.Load().base, f.token}
		jobs, err := w.claim(20, 0)
		switch {
		case err != nil:
			<-time.After(20 * time.Millisecond)
			continue
		case len(jobs) == 0 && f.over.Load():
			return
		case len(jobs) == 0:
			<-time.After(20 * time.Millisecond)
			continue
		case !f.over.Load() && rand.Float64() < forget:
			f.deaths.Add(1)
			continue
		}
		// A settlement is repeated until it is acknowledged.
		for {
			w := &workerClient{f.dispatch.Load().base, f.token}
			states, err := w.settle(jobs)
			if err == nil {
				f.acknowledge(jobs, states)
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

func (f *fleet) acknowledge(jobs []job, states []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, j := range jobs {
		if states[i] != "settled" {
			continue
		}
		if attempt, ok := f.settled[j.ID]; ok && attempt != j.Attempt {
			f.twice = append(f.twice, j.ID)
		}
		f.settled[j.ID] = j.Attempt
	}
}

// TestFaultDispatch kills the dispatcher, PostgreSQL and workers while jobs are worked. No acknowledged settlement is lost, no
// job is settled by two attempts, and every run is completed.
func TestFaultDispatch(t *testing.T) {
	t.Parallel()
	orders, kills, crashes, forget := 20, 4, 1, 0.05
	if storetest.Long() {
		orders, kills, crashes, forget = 500, 50, 10, 0.05
	}
	c := storetest.NewCluster(t)
	url := c.URL()
	_, key := customer(t, url, 1_000_000)
	serve := startServe(t, url)
	body := strings.Replace(testRun, `"repetitions":3`, `"repetitions":20`, 1) // 40 jobs
	for n := range orders {
		if a, err := serve.do(t.Context(), "POST", "", key.Key, fmt.Sprint("fault-", n), body); err != nil || a.status != 202 {
			t.Fatalf("creating a run: %v %v", a, err)
		}
	}
	f := &fleet{t: t, token: newWorker(t, url), settled: make(map[string]int)}
	f.dispatch.Store(startDispatch(t, url))
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { f.work(forget) })
	}
	for n := range kills {
		<-time.After(time.Duration(20+rand.IntN(200)) * time.Millisecond)
		f.dispatch.Load().kill()
		if n < crashes {
			c.Kill()
			c.Start(t)
		}
		f.dispatch.Store(startDispatch(t, url))
	}
	pool := connectTo(t, url)
	f.over.Store(true)
	workers.Wait()
	for left := 1; left > 0; {
		// What killed processes had comes back when its leases end, which the test does not wait for.
		if _, err := pool.Exec(t.Context(), `UPDATE job_leases SET until = now() WHERE state = 'held'`); err != nil {
			t.Fatal(err)
		}
		f.work(0)
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM measurement_runs WHERE status IN ('queued', 'running')`).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}

	rows, err := pool.Query(t.Context(), `SELECT answer FROM job_results WHERE error_code IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	stored := make(map[string]string, len(answers)) // job and attempt, by job
	for _, a := range answers {
		_, text, _ := strings.Cut(a, `"text":"of `)
		text, _, _ = strings.Cut(text, `"`)
		id, _, _ := strings.Cut(text, " ")
		stored[id] = text
	}
	lost := 0
	for id, attempt := range f.settled {
		if stored[id] != fmt.Sprintf("%s in attempt %d", id, attempt) {
			lost++
			t.Logf("job %s was acknowledged in attempt %d; the database has %q", id, attempt, stored[id])
		}
	}
	if lost > 0 || len(f.twice) > 0 || len(answers) != len(stored) {
		t.Errorf("%d acknowledged settlements are lost, %d jobs were settled twice, %d answers of %d jobs", lost, len(f.twice), len(answers), len(stored))
	}
	cli[any](t, url, "verify")
	t.Logf("%d kills of the dispatcher, %d of PostgreSQL, %d of workers: %d jobs final, %d acknowledged, %d lost, %d settled twice",
		kills, crashes, f.deaths.Load(), len(answers), len(f.settled), lost, len(f.twice))
}

// TestMigrateGrantDispatch: aiv dispatch does all of its work as the role that aiv migrate -grant-dispatch has made for it, and
// that role can do nothing else.
func TestMigrateGrantDispatch(t *testing.T) {
	t.Parallel()
	url, pool := database(t)
	_, key := customer(t, url, 1000)
	var role string
	if err := pool.QueryRow(t.Context(), `SELECT 'dispatch-' || current_database()`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `CREATE ROLE "`+role+`" LOGIN`); err != nil {
		t.Fatal(err)
	}
	cli[any](t, url, "migrate", "-grant-dispatch", role)
	cli[any](t, url, "providers", "set", "p", "-per-minute", "1000")
	serve := startServe(t, url)
	as := strings.Replace(url, "user=aiv", "user="+role, 1)
	dispatch := startDispatch(t, as, "-answers-kept", "400d")
	run := order(t, serve, key.Key, "roles")
	w := &workerClient{dispatch.base, newWorker(t, url)}
	jobs, err := w.claim(10, 20)
	if err != nil || len(jobs) != 6 {
		t.Fatalf("claimed %v, %v", jobs, err)
	}
	for i, outcome := range []map[string]any{
		{"outcome": "failed", "error": map[string]any{"code": "c", "message": ""}}, {"outcome": "released"}, {"outcome": "throttled", "after_seconds": 1},
		{"outcome": "retry", "error": map[string]any{"code": "c", "message": ""}, "after_seconds": 1},
	} {
		outcome["id"], outcome["attempt"] = jobs[i].ID, jobs[i].Attempt
		if _, err := w.call("/settle", map[string]any{"jobs": []any{outcome}}, &[]any{}); err != nil {
			t.Error(err)
		}
	}
	if states, err := w.settle(jobs[4:]); err != nil || strings.Join(states, " ") != "settled settled" {
		t.Errorf("settled: %v, %v", states, err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE job_leases SET until = now()`); err != nil {
		t.Fatal(err)
	}
	wait(t, "the run", `"status":"partial"`, func() string {
		if jobs, err := w.claim(10, 0); err == nil && len(jobs) > 0 {
			w.settle(jobs)
		}
		return serve.get(t, "/v1/runs/"+run, key.Key).body
	})
	if _, page := dispatch.asAdmin(t, "GET", "/metrics", ""); !strings.Contains(page, "\naiv_database_up 1\n") {
		t.Errorf("metrics as %s: %s\n%s", role, page, dispatch.log.end())
	}
	if err := dispatch.stop(); err != nil || strings.Contains(dispatch.log.String(), "permission denied") {
		t.Errorf("dispatch ended with %v\n%s", err, dispatch.log)
	}

	mine := connectTo(t, as)
	for _, sql := range []string{
		`SELECT FROM credentials`, `SELECT FROM audit_log`, `SELECT FROM idempotency_records`, `UPDATE plans SET features = '{}'`,
		`UPDATE accounts SET plan_code = ''`, `INSERT INTO workers (id, name, token_hash) VALUES (gen_random_uuid(), 'w', sha256(''))`,
		`UPDATE workers SET revoked_at = NULL`, `UPDATE workers SET token_hash = sha256('')`, `UPDATE provider_settings SET in_flight = NULL`,
		`UPDATE provider_dependencies SET met = true`, `INSERT INTO measurement_runs DEFAULT VALUES`, `DELETE FROM measurement_runs`,
		`UPDATE measurement_runs SET total_jobs = 1`, `UPDATE measurement_runs SET account_id = id`, `DELETE FROM job_results`,
		`UPDATE job_results SET error_code = 'c'`, `UPDATE models SET status = 'active'`, `DELETE FROM questions`, `TRUNCATE job_queue`,
		`UPDATE shared_secrets SET secret = ''`, `UPDATE webhook_master SET fingerprint = ''`, `UPDATE events SET data = '{}'`, `DROP TABLE job_queue`,
		`CREATE TABLE mine (id integer)`, `SELECT cancel_run(gen_random_uuid(), gen_random_uuid())`, `DELETE FROM usage_records`,
	} {
		_, err := mine.Exec(t.Context(), sql)
		if e, ok := err.(*pgconn.PgError); !ok || e.Code != "42501" {
			t.Errorf("%s: got %v, want permission denied", sql, err)
		}
	}
}

func connectTo(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.Open(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
