package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store"
	"aiv/store/storetest"
)

// TestSlowReadsStopNothingElse: reads of different pages wait for a lock, more of them than there are connections.
// Requests that are only counted, and runs, are served while they wait. The reads end with 503 when their statements
// time out.
func TestSlowReadsStopNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const conns = 4
	openReads := func(timeout string) {
		t.Helper()
		reads, err := store.Open(t.Context(), f.url+"&lock_timeout=0&statement_timeout="+timeout, conns)
		must(t, err)
		t.Cleanup(reads.Close)
		f.reads = reads
	}
	var waiting sync.WaitGroup
	var ended, refused atomic.Int32
	// readBehindLock starts reads of different pages, which must get the status, or 503 if they have waited for too
	// long in the queue.
	readBehindLock := func(g *gateway.Gateway, reads, status int) {
		for i := range reads {
			waiting.Go(func() {
				code := ask(g, f.keys["full"], "GET", fmt.Sprintf("/v1/alerts?limit=%d", i+1), "").Code
				ended.Add(1)
				if code == http.StatusServiceUnavailable {
					refused.Add(1)
				} else if code != status {
					t.Errorf("a read behind the lock: got %d", code)
				}
			})
		}
	}
	lock, err := f.pool.Begin(t.Context())
	must(t, err)
	defer lock.Rollback(t.Context())
	_, err = lock.Exec(t.Context(), `LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE`)
	must(t, err)

	openReads("100ms")
	began := time.Now()
	readBehindLock(f.gateway(io.Discard), 4*conns, http.StatusServiceUnavailable)
	waiting.Wait()
	// Four at a time wait for 100 ms; reads that were shared would take less.
	if took := time.Since(began); took < 300*time.Millisecond || refused.Load() != 4*conns {
		t.Errorf("%d of %d reads were refused in %v", refused.Load(), 4*conns, took)
	}

	openReads("10min")
	ended.Store(0)
	g := f.gateway(io.Discard)
	readBehindLock(g, 4*conns, http.StatusOK)
	storetest.Eventually(t, "each connection for reads waits for the lock", func() bool {
		var n int
		const waiting = `SELECT count(*) FROM pg_locks WHERE relation = 'alerts'::regclass AND NOT granted`
		must(t, f.pool.QueryRow(t.Context(), waiting).Scan(&n))
		return n == conns
	})
	const run = `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`
	for i := range 10 {
		if code := ask(g, f.keys["full"], "GET", "/v1/me", "").Code; code != http.StatusOK {
			t.Errorf("a request that is only counted: got %d", code)
		}
		w := askWith(g, f.keys["full"], fmt.Sprintf("run-%d", i), "POST", "/v1/runs", run)
		if w.Code != http.StatusAccepted {
			t.Errorf("a run: got %d", w.Code)
		}
		if i == 0 && ended.Load() > 0 {
			t.Errorf("%d reads did not wait", ended.Load())
		}
	}
	must(t, lock.Rollback(t.Context()))
	waiting.Wait()
	if code := ask(g, f.keys["full"], "GET", "/v1/alerts", "").Code; code != http.StatusOK {
		t.Errorf("a read after the lock: got %d", code)
	}
}
