package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aiv/gateway"
)

// TestGuessingIsSlow: every 401 is delayed, so that a connection that tries keys gets at most ten responses a second.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.delay = 100 * time.Millisecond
	g := f.gateway(io.Discard)
	for _, authorization := range []string{"", "Basic x", "Bearer x", "Bearer " + f.keys["revoked"], "Bearer " + f.keys["expired"]} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", gateway.Base+"/v1/me", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		began := time.Now()
		g.ServeHTTP(w, r)
		if took := time.Since(began); w.Code != http.StatusUnauthorized || took < f.delay {
			t.Errorf("%q: got %d after %v, want 401 after %v at least", authorization, w.Code, took, f.delay)
		}
	}
}
