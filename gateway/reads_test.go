package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
)

// TestSlowReadsStopNothingElse: reads of different pages wait for a lock, more of them than there are connections. Requests that are
// only counted, and runs, are served at the same time; the reads end with 503 within the time of a statement and of the
// queue.
func TestSlowReadsStopNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reads, err := store.OpenAnother(t.Context(), f.pool, 4, "statement_timeout", 500*time.Millisecond)
	must(t, err)
	defer reads.Close()
	f.reads = reads
	g := f.gateway(io.Discard)
	ask := func(method, address, body string) int {
		return ask(g, f.keys["full"], method, address, body).Code
	}
	ask("GET", "/v1/runs", "")
	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), `LOCK TABLE alerts IN ACCESS EXCLUSIVE MODE`)
	must(t, err)

	var wg sync.WaitGroup
	var refused atomic.Int32
	ended := make(chan struct{})
	began := time.Now()
	for i := range 16 {
		wg.Go(func() {
			if code := ask("GET", fmt.Sprintf("/v1/alerts?limit=%d", i+1), ""); code == http.StatusServiceUnavailable {
				refused.Add(1)
			} else {
				t.Errorf("a read behind the lock: got %d, want 503", code)
			}
		})
	}
	go func() { wg.Wait(); close(ended) }()
	const run = `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`
	others := 0
	for during := true; during; others++ {
		before := time.Now()
		if code := ask("GET", "/v1/me", ""); code != http.StatusOK {
			t.Errorf("a request that is only counted: got %d", code)
		}
		if code := askWith(g, f.keys["full"], fmt.Sprintf("run-%d", others), "POST", "/v1/runs", run).Code; code != http.StatusAccepted {
			t.Errorf("a run: got %d", code)
		}
		if took := time.Since(before); took > time.Second {
			t.Errorf("two requests took %v beside reads that wait", took)
		}
		select {
		case <-ended:
			during = false
		default:
		}
	}
	// Four at a time wait for 500 ms; reads that were shared would take less.
	if took := time.Since(began); took < 1500*time.Millisecond || took > 6*time.Second || refused.Load() != 16 || others < 10 {
		t.Errorf("%d of 16 reads were refused in %v beside %d other requests", refused.Load(), took, others)
	}
	must(t, tx.Rollback(t.Context()))
	if code := ask("GET", "/v1/alerts", ""); code != http.StatusOK {
		t.Errorf("a read after the lock: got %d", code)
	}
}
