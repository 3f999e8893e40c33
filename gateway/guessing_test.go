package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/gateway"
)

// TestGuessingIsSlow: every 401 is delayed, so that connections that try keys get ten responses a second each, and a valid
// client beside 64 of them is served at nearly the rate that it has alone.
func TestGuessingIsSlow(t *testing.T) {
	f := newFixture(t)
	f.delay = 100 * time.Millisecond
	g := f.gateway(io.Discard)
	status := func(authorization string) int {
		r := httptest.NewRequest("GET", gateway.Base+"/v1/me", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	for _, authorization := range []string{"", "Basic x", "Bearer x", "Bearer " + f.keys["revoked"], "Bearer " + f.keys["expired"]} {
		began := time.Now()
		if code := status(authorization); code != http.StatusUnauthorized {
			t.Errorf("%q: got %d, want 401", authorization, code)
		}
		if took := time.Since(began); took < f.delay {
			t.Errorf("%q: answered after %v, want %v", authorization, took, f.delay)
		}
	}

	const requests = 300
	serve := func() time.Duration {
		began := time.Now()
		for range requests {
			if code := status("Bearer " + f.keys["full"]); code != http.StatusOK {
				t.Errorf("a valid client got %d", code)
			}
		}
		return time.Since(began)
	}
	alone := serve()
	const guessers = 64
	var guesses atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	began := time.Now()
	for range guessers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					status("Bearer " + f.keys["revoked"])
					guesses.Add(1)
				}
			}
		})
	}
	beside := serve()
	close(stop)
	wg.Wait()
	if most := guessers * (int64(time.Since(began)/f.delay) + 1); guesses.Load() > most {
		t.Errorf("%d guesses were answered, want at most %d", guesses.Load(), most)
	}
	// Generous, since other tests run beside this one. Without the delay the guesses take all processors.
	if beside > 3*alone+time.Second {
		t.Errorf("%d valid requests took %v alone and %v beside guesses", requests, alone, beside)
	}
}
