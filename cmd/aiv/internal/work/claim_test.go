package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRedirectGetsNoToken: a redirect is not followed, because its target would get the token.
func TestRedirectGetsNoToken(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was sent to another server, with Authorization: %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	var jobs []json.RawMessage
	if err := newClient(server.URL, "x").call(t.Context(), time.Minute, "/claim", nil, &jobs); err == nil || !strings.Contains(err.Error(), "status 307") {
		t.Errorf("got %v, want an error with the status", err)
	}
}

// TestUnauthorizedWorkerEnds: a 401 ends the worker and its commands at once, whichever request gets it.
func TestUnauthorizedWorkerEnds(t *testing.T) {
	t.Parallel()
	for refused, lease := range map[string]time.Duration{"/claim": time.Hour, "/heartbeat": 3 * time.Second} {
		t.Run(refused[1:], func(t *testing.T) {
			t.Parallel()
			var claims atomic.Int64
			cfg := config(t, func(_ context.Context, route, body string) (int, string, error) {
				n := int64(0)
				if route == "/claim" {
					n = claims.Add(1)
				}
				switch {
				case n == 1:
					return 200, oneJob, nil
				case route == refused || route == "/settle":
					return 401, `{"code":"invalid_token"}`, nil
				case n > 1: // on a slow machine, the lease of the first job may have ended before it is renewed
					return 200, fmt.Sprintf(`{"jobs":[{"id":"another_%d","attempt":1}]}`, n), nil
				}
				return 200, noJobs, nil
			}, 2, Command{Args: []string{"sleep", "600"}})
			cfg.Lease, cfg.Drain = lease, time.Hour // leases are renewed three times in their time
			err := Run(t.Context(), cfg)
			if want := "the dispatcher refused " + refused + " with 401"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the worker ended with %v, want %s", err, want)
			}
		})
	}
}

// TestWorkerClaimsWhatItCanStart: a worker claims what it can start, up to 500 jobs, and gives back what it claimed
// while it was asked to end.
func TestWorkerClaimsWhatItCanStart(t *testing.T) {
	t.Parallel()
	var ids atomic.Int64 // no job is handed out twice, or the first one's attempt would be lost
	jobs := func(n int) string {
		var all []string
		for range n {
			all = append(all, fmt.Sprintf(`{"id":"job_%d","attempt":1}`, ids.Add(1)))
		}
		return `{"jobs":[` + strings.Join(all, ",") + `]}`
	}
	for _, test := range []struct {
		name      string
		parallel  int
		responses []int // jobs, of the claims until the worker is asked to end, the last during it
		limits    []int // in the claims
		released  int
	}{
		{"more than it may claim", 502, []int{3, 0, 0}, []int{500, 499, 499}, 3},
		{"one by one", 2, []int{1, 0, 0, 1}, []int{2, 1, 1, 1}, 2},
		{"while asked to end", 3, []int{2}, []int{3}, 2},
		{"more than it asked for", 1, []int{2}, []int{1}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			var limits []int // the server gets one claim at a time
			var released atomic.Int64
			if err := Run(ctx, config(t, func(_ context.Context, route, body string) (int, string, error) {
				if route == "/settle" {
					released.Add(int64(strings.Count(body, `"outcome":"released"`)))
					return 200, settledAll(body), nil
				}
				var sent struct{ Limit int }
				err := json.Unmarshal([]byte(body), &sent)
				limits = append(limits, sent.Limit)
				if len(limits) == len(test.responses) {
					cancel()
				}
				return 200, jobs(test.responses[len(limits)-1]), err
			}, test.parallel, Command{Args: []string{"sleep", "600"}})); err != nil {
				t.Error(err)
			}
			equal(t, "limits of claims", limits, test.limits)
			if n := int(released.Load()); n != test.released {
				t.Errorf("%d jobs were released, want %d", n, test.released)
			}
		})
	}
}
