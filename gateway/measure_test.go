package gateway_test

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"aiv/store"
)

// TestSlowMeasurementIsUnavailable: a read of the measurement that takes too long is answered with 503, and the next
// one is served.
func TestSlowMeasurementIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	run := func() string { return store.NewID().Text("run") }
	compare := "/v1/metrics/compare?run_id=" + run() + "&baseline_run_id=" + run()
	addresses := []string{"/v1/metrics", compare, "/v1/sources"}
	read := func(want int) {
		t.Helper()
		var running sync.WaitGroup
		for _, address := range addresses {
			running.Go(func() {
				w := ask(g, f.keys["full"], "GET", address, "")
				retry, unavailable := w.Header()["Retry-After"], want == http.StatusServiceUnavailable
				if w.Code != want || (retry != nil) != unavailable {
					t.Errorf("GET %s: got %d, Retry-After %q, want %d: %s", address, w.Code, retry, want, w.Body)
				}
				if vary := w.Header()["Vary"]; unavailable && vary != nil {
					t.Errorf("GET %s: a problem has Vary: %s", address, vary)
				}
			})
		}
		running.Wait()
	}
	lock, err := f.pool.Begin(t.Context())
	must(t, err)
	defer lock.Rollback(t.Context())
	_, err = lock.Exec(t.Context(), `LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`)
	must(t, err)
	read(http.StatusServiceUnavailable)
	must(t, lock.Rollback(t.Context()))
	read(http.StatusOK)
}
