package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store"
)

// TestFullAccount: an account that has as much memory for bodies, as many runs being created or as many pages being
// sent as it may have is rejected; others are served.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for bound, method := range map[string]string{"bodies": "POST", "writes": "POST", "pages": "GET"} {
		release := g.Fill(bound, f.accounts["golden"])
		for key, rejected := range map[string]bool{"full": true, "other": false} {
			body := map[string]string{"POST": smallRun}[method]
			if w := ask(g, f.keys[key], method, "/v1/runs", body); (w.Code == http.StatusServiceUnavailable) != rejected {
				t.Errorf("%s with key %s, full of %s: got %d", method, key, bound, w.Code)
			}
		}
		release()
	}
}

// TestSlowReceiversHoldNoReader: clients that do not take their responses do not keep others from the reads of the
// database.
func TestSlowReceiversHoldNoReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var err error
	f.reads, err = store.OpenAnother(t.Context(), f.pool, 2, "statement_timeout", 2*time.Second)
	must(t, err)
	defer f.reads.Close()
	g := f.gateway(io.Discard)
	run := "/v1/runs/" + f.run(t, g, f.keys["full"])
	for _, address := range []string{"/v1/runs", run, "/v1/usage", run + "/results", "/v1/webhooks"} {
		begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		const slow = 3
		for range slow {
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), "GET", gateway.Base+address, nil)
				r.Header.Set("Authorization", "Bearer "+f.keys["full"])
				g.ServeHTTP(&slowWriter{httptest.NewRecorder(), begun, release}, r)
				ended <- struct{}{}
			}()
		}
		for range slow {
			<-begun
		}
		if code := ask(g, f.keys["other"], "GET", "/v1/runs", "").Code; code != http.StatusOK {
			t.Errorf("%s: got %d while %d responses are not taken", address, code, slow)
		}
		close(release)
		for range slow {
			<-ended
		}
	}
}

// slowWriter is a response whose client reads only when it is released.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun   chan<- struct{}
	release <-chan struct{}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.release
	return w.ResponseRecorder.Write(p)
}
