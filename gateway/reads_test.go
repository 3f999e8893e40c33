package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// lockTables keeps others from the tables until the transaction ends.
func (f *fixture) lockTables(t *testing.T, tables string) pgx.Tx {
	t.Helper()
	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+tables+" IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	return tx
}

// TestSlowReadIsUnavailable: a read that takes too long is answered with 503, and the next one is served.
func TestSlowReadIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var err error
	f.reads, err = store.OpenAnother(t.Context(), f.pool, 4, "lock_timeout", 100*time.Millisecond)
	must(t, err)
	t.Cleanup(f.reads.Close)
	g := f.gateway(io.Discard)
	run := func() string { return store.NewID().Text("run") }
	lock := f.lockTables(t, "measurement_runs, alerts")
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		unavailable := want == http.StatusServiceUnavailable
		if !unavailable {
			must(t, lock.Rollback(t.Context()))
		}
		for _, address := range []string{
			"/v1/alerts", "/v1/metrics", "/v1/metrics/compare?run_id=" + run() + "&baseline_run_id=" + run(), "/v1/sources",
		} {
			w := ask(g, f.keys["full"], "GET", address, "")
			if retry := w.Header()["Retry-After"]; w.Code != want || (retry != nil) != unavailable {
				t.Errorf("GET %s: got %d, Retry-After %q, want %d: %s", address, w.Code, retry, want, w.Body)
			}
			if vary := w.Header()["Vary"]; unavailable && vary != nil {
				t.Errorf("GET %s: a problem has Vary: %s", address, vary)
			}
		}
	}
}

// TestSlowReadsStopNothingElse: reads of different pages wait for a lock, more of them than there are connections.
// Requests that are only counted, and runs, are served while they wait.
func TestSlowReadsStopNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const conns = 4
	var err error
	f.reads, err = store.Open(t.Context(), f.url+"&lock_timeout=0&statement_timeout=10min", conns)
	must(t, err)
	t.Cleanup(f.reads.Close)
	g := f.gateway(io.Discard)
	lock := f.lockTables(t, "alerts")
	var waiting sync.WaitGroup
	for i := range 4 * conns {
		waiting.Go(func() {
			code := ask(g, f.keys["full"], "GET", fmt.Sprintf("/v1/alerts?limit=%d", i+1), "").Code
			if code != http.StatusOK && code != http.StatusServiceUnavailable { // after too long in the queue
				t.Errorf("a read behind the lock: got %d", code)
			}
		})
	}
	storetest.Eventually(t, "each connection for reads waits for the lock", func() bool {
		var n int
		const waiting = `SELECT count(*) FROM pg_locks WHERE relation = 'alerts'::regclass AND NOT granted`
		must(t, f.pool.QueryRow(t.Context(), waiting).Scan(&n))
		return n == conns
	})
	for range 10 {
		if code := ask(g, f.keys["full"], "GET", "/v1/me", "").Code; code != http.StatusOK {
			t.Errorf("a request that is only counted: got %d", code)
		}
		f.run(t, g, f.keys["full"])
	}
	must(t, lock.Rollback(t.Context()))
	waiting.Wait()
	if code := ask(g, f.keys["full"], "GET", "/v1/alerts", "").Code; code != http.StatusOK {
		t.Errorf("a read after the lock: got %d", code)
	}
}
