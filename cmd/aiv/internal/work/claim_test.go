package work

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestTemporaryFailuresAreTriedAgain: a worker tries again what the dispatcher cannot do now, and nothing that it refuses.
func TestTemporaryFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{307: false, 400: false, 401: false, 403: false, 404: false, 408: true, 429: true, 500: true, 503: true} {
		if got := (&statusError{status: status}).temporary(); got != want {
			t.Errorf("%d: got %t, want %t", status, got, want)
		}
	}
}

// TestUnauthorizedWorkerEnds: a 401 ends the worker and its commands at once, whichever request gets it.
func TestUnauthorizedWorkerEnds(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"/claim", "/heartbeat"} {
		t.Run(refused[1:], func(t *testing.T) {
			t.Parallel()
			var claimed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch route := strings.TrimPrefix(r.URL.Path, "/worker/v1"); {
				case route == "/claim" && !claimed.Swap(true):
					fmt.Fprint(w, `{"jobs":[{"id":"job_1","attempt":1}]}`)
				case route == "/claim" && refused != route && strings.Contains(string(body), `"wait_seconds":0`):
					fmt.Fprint(w, `{"jobs":[]}`)
				case route == "/claim" && refused != route:
					<-r.Context().Done()
				default:
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, `{"code":"invalid_token"}`)
				}
			}))
			t.Cleanup(server.Close)
			lease := time.Hour
			if refused == "/heartbeat" {
				lease = 3 * time.Second // renewed three times in it
			}
			err := Run(t.Context(), Config{
				URL: server.URL, Token: "x", Parallel: 2, Lease: lease, Drain: time.Hour, Kill: context.Background(),
				Log: slog.New(slog.DiscardHandler), Executor: Command{Args: []string{"sleep", "600"}},
			})
			if want := "the dispatcher refused " + refused + " with 401"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the worker ended with %v, want %s", err, want)
			}
		})
	}
}

// TestWorkerClaimsWhatItCanStart: a worker claims what it can start, up to 500 jobs, and gives back what it claimed while it was asked to
// end.
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
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
				case "/claim":
					var sent struct{ Limit int }
					json.Unmarshal(body, &sent)
					limits = append(limits, sent.Limit)
					if len(limits) == len(test.responses) {
						cancel()
					}
					fmt.Fprint(w, jobs(test.responses[len(limits)-1]))
				case "/settle":
					n := strings.Count(string(body), `"outcome":"released"`)
					released.Add(int64(n))
					fmt.Fprintf(w, `{"jobs":[%s]}`, strings.Repeat(`,{"state":"settled"}`, n)[1:])
				}
			}))
			t.Cleanup(server.Close)
			if err := Run(ctx, Config{
				URL: server.URL, Token: "x", Parallel: test.parallel, Lease: time.Hour, Kill: context.Background(),
				Log: slog.New(slog.DiscardHandler), Executor: Command{Args: []string{"sleep", "600"}},
			}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.limits, limits); diff != "" || int(released.Load()) != test.released {
				t.Errorf("%d jobs were released, want %d; limits of claims (-want +got):\n%s", released.Load(), test.released, diff)
			}
		})
	}
}
