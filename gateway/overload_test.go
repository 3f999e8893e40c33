package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/auth"
	"aiv/limits"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestFullAccount: an account at its bound of bodies, new runs or pages being sent is rejected; others are served.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway()
	for name, bound := range map[string]*share{"POST bodies": &g.bodies, "POST writes": &g.writes, "GET pages": &g.pages} {
		method, _, _ := strings.Cut(name, " ")
		bound.take(f.accounts["golden"], bound.maxOfOne)
		for key, rejected := range map[string]bool{"full": true, "other": false} {
			body := map[string]string{"POST": smallRun}[method]
			if w := ask(g, f.keys[key], method, "/v1/runs", body); (w.Code == http.StatusServiceUnavailable) != rejected {
				t.Errorf("%s with key %s: got %d", name, key, w.Code)
			}
		}
		bound.release(f.accounts["golden"], bound.maxOfOne)
	}
}

// readBy has the gateway read by another pool.
func (f *fixture) readBy(t *testing.T, conns int32, setting string, value time.Duration) {
	t.Helper()
	var err error
	f.reads, err = store.OpenAnother(t.Context(), f.pool, conns, setting, value)
	must(t, err)
	t.Cleanup(f.reads.Close)
}

// A hookedWriter is a response that calls a function before each write.
type hookedWriter struct {
	*httptest.ResponseRecorder
	before func()
}

func (w hookedWriter) Write(p []byte) (int, error) {
	w.before()
	return w.ResponseRecorder.Write(p)
}

// TestSlowReceiversHoldNoReader: clients that do not take their responses keep no others from reading.
func TestSlowReceiversHoldNoReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.readBy(t, 2, "statement_timeout", time.Minute)
	g := f.gateway()
	run := "/v1/runs/" + f.run(t, g, f.keys["full"])
	begun, release := make(chan bool), make(chan bool)
	var ended sync.WaitGroup
	for _, address := range slices.Repeat([]string{"/v1/runs", run, "/v1/usage", run + "/results", "/v1/webhooks"}, 3) {
		ended.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "GET", Base+address, nil)
			r.Header.Set("Authorization", "Bearer "+f.keys["full"])
			g.ServeHTTP(hookedWriter{httptest.NewRecorder(), func() { begun <- true; <-release }}, r)
		})
		<-begun
		storetest.Equal(t, http.StatusOK, ask(g, f.keys["other"], "GET", "/v1/runs", "").Code, "while responses are not taken: ", address)
	}
	close(release)
	ended.Wait()
}

// TestPagesShareATurn: up to four pages of runs that wait, with up to 200 runs, are read in one turn. If the connection
// ends during a turn, the read whose statement is being executed fails, and the other reads are repeated.
func TestPagesShareATurn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.readBy(t, 1, "statement_timeout", time.Minute)
	g, keys := f.gateway(), []string{f.keys["full"], f.keys["other"]}
	for n := range 6 {
		f.run(t, g, keys[n%2])
	}
	q := g.readQueue
	for i, limits := range [][]int{{1, 2, 3, 4, 5, 6}, {70, 71, 72, 73}, {1, 2, 3, 4, 5, 6}} {
		page := func(n int) string {
			return ask(g, keys[n%2], "GET", fmt.Sprint("/v1/runs?limit=", limits[n]), "").Body.String()
		}
		var want []string
		for n := range limits {
			want = append(want, page(n))
		}
		release, err := q.acquire(t.Context(), store.ID{}, nil)
		must(t, err)
		lock := storetest.Begin(t, f.pool, "LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE")
		var failed atomic.Int32
		var reads sync.WaitGroup
		for n := range want {
			reads.Go(func() {
				if page(n) != want[n] {
					failed.Add(1)
				}
			})
		}
		waiting := func() int { q.mu.Lock(); defer q.mu.Unlock(); return len(q.joined) }
		storetest.Eventually(t, "all pages wait", func() bool { return waiting() == len(want) })
		release()
		storetest.Eventually(t, "a turn waits for the lock", func() bool { return waiting() == 2 && storetest.Waiting(t, f.pool) == 1 })
		fails := i / 2 // the last turn fails
		if fails > 0 {
			storetest.Exec(t, f.pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		}
		must(t, lock.Rollback(t.Context()))
		reads.Wait()
		storetest.Equal(t, fails, int(failed.Load()), limits)
	}
}

// TestReadsBeginEarly: a run is read while its request is being counted, if the credential may read runs. The read of a
// request that is refused is dropped, that of another account is not used, and one that fails is repeated.
func TestReadsBeginEarly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.serves = storetest.Open(t, f.url+"&lock_timeout=10min&statement_timeout=10min", store.OpenHot, 4)
	g := f.gateway()
	run, answered := "/v1/runs/"+f.run(t, g, f.keys["full"]), make(chan int)
	get := func(key string) int { return ask(g, f.keys[key], "GET", run, "").Code }
	reads := func() uint64 { s := g.cfg.Runs.Stats().Reads; return s.Inputs + uint64(s.Waiting) }
	for key, of := range map[string]struct{ status, reads int }{
		"webhooks": {403, 0}, "no_access": {403, 0}, "reader": {200, 1}, "other": {404, 1}} {
		get(key) // caches the credential
		want := reads() + uint64(of.reads)
		lock := storetest.Begin(t, f.pool, "LOCK TABLE api_rate_limit_buckets IN ACCESS EXCLUSIVE MODE")
		go func() { answered <- get(key) }()
		storetest.Eventually(t, "the request is being counted", func() bool { return storetest.Waiting(t, f.pool) == 1 && reads() == want })
		must(t, lock.Rollback(t.Context()))
		storetest.Equal(t, []any{of.status, want}, []any{<-answered, reads()}, key)
	}
	lock, want := storetest.Begin(t, f.pool, "LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE"), reads()+1
	go func() { answered <- get("reader") }()
	storetest.Exec(t, f.pool, fmt.Sprintf("SELECT pg_cancel_backend(%d)", storetest.UntilWaiting(t, f.pool, "relation")))
	storetest.Eventually(t, "the read is repeated", func() bool { return storetest.Waiting(t, f.pool) == 1 && reads() == want })
	must(t, storetest.Ignore(f.auth().RevokeKey(t.Context(), f.credentials["other"])))
	storetest.Equal(t, []int{401, 0}, []int{get("other"), g.cfg.Runs.Stats().Reads.Waiting}, "of a revoked key: status, reads that wait")
	must(t, lock.Rollback(t.Context()))
	storetest.Equal(t, 200, <-answered)
	x := &exchange{admission: &limits.Admission{Credential: &auth.Credential{}}, logicalRequest: logicalRequest{path: run}}
	id, _ := x.namedRun()
	g.readEarly(x, &auth.Credential{AccountID: f.accounts["golden"], Scopes: readRuns, Plan: auth.Plan{Features: []string{"api_access"}}}, id)
	storetest.Equal(t, true, x.early != nil && errors.Is(storetest.Ignore(g.getRun(x, id)), runs.ErrNotFound), "it is another account's run")
}

// TestSlowReadIsUnavailable: a read that takes too long is answered with 503, and the next one is served.
func TestSlowReadIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.readBy(t, 4, "lock_timeout", 100*time.Millisecond)
	g := f.gateway()
	lock := storetest.Begin(t, f.pool, "LOCK TABLE measurement_runs, alerts IN ACCESS EXCLUSIVE MODE")
	const runs = "run_id=run_01k00000000000000000000000&baseline_run_id=run_01k00000000000000000000001"
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		for _, address := range []string{"/v1/alerts", "/v1/metrics", "/v1/metrics/compare?" + runs, "/v1/sources"} {
			w := ask(g, f.keys["full"], "GET", address, "")
			if w.Code != want || (w.Header()["Retry-After"] != nil) != (want == http.StatusServiceUnavailable) {
				t.Errorf("GET %s: got %d, %v, want %d: %s", address, w.Code, w.Header(), want, w.Body)
			}
		}
		lock.Rollback(t.Context()) // fails after the first time
	}
}

// TestSlowReadsStopNothingElse: reads of different pages wait for a lock, more of them than there are connections.
// Requests that are only counted, and runs, are served while they wait.
func TestSlowReadsStopNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const conns = 4
	f.readBy(t, conns, "statement_timeout", 10*time.Minute)
	g := f.gateway()
	lock := storetest.Begin(t, f.pool, "LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE")
	var waiting sync.WaitGroup
	for i := range 4 * conns {
		waiting.Go(func() {
			code := ask(g, f.keys["full"], "GET", fmt.Sprintf("/v1/alerts?limit=%d", i+1), "").Code
			if code != http.StatusOK && code != http.StatusServiceUnavailable { // after too long in the queue
				t.Errorf("a read behind the lock: got %d", code)
			}
		})
	}
	storetest.Eventually(t, "each connection for reads waits", func() bool { return storetest.Waiting(t, f.pool) == conns })
	for range 10 {
		storetest.Equal(t, http.StatusOK, ask(g, f.keys["full"], "GET", "/v1/me", "").Code, "a request that is only counted")
		f.run(t, g, f.keys["full"])
	}
	must(t, lock.Rollback(t.Context()))
	waiting.Wait()
}
