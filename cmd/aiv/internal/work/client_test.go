package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// settlements returns the settlements of jobs that all have one outcome.
func settlements(tasks []*task, o Outcome) (batch []settlement) {
	for _, tk := range tasks {
		batch = append(batch, newSettlement(tk, o))
	}
	return batch
}

// TestRefusedSettlements: an answer that the dispatcher refuses fails its job; one that a proxy refuses is sent again. A
// failure that the dispatcher refuses ends the worker.
func TestRefusedSettlements(t *testing.T) {
	t.Parallel()
	const page = "<html>no</html>"
	const completed = `"outcome":"completed","answer":{}`
	const failed = `"outcome":"failed","error":{"code":"invalid_answer","message":`
	var answer, failure Outcome = Completed{Raw: json.RawMessage("{}")}, Failed{"invalid_answer", "x"}
	again := [][]string{{completed}, {completed}}
	alone := [][]string{{completed, completed}, {completed}, {completed}}
	for _, test := range []struct {
		name    string
		outcome Outcome
		jobs    int
		status  int // of the first response
		body    string
		want    [][]string // the settlements in each request
	}{
		{"by the dispatcher", answer, 1, 400, `{"code":"invalid_request","errors":[{"pointer":"#/jobs/0/answer/text","detail":"is long"}]}`,
			[][]string{{completed}, {failed + `"text is long"}`}}},
		{"by the dispatcher without pointers", answer, 1, 413, `{"code":"body_too_large","detail":"It is long."}`,
			[][]string{{completed}, {failed + `"It is long."}`}}},
		{"a failure by the dispatcher", failure, 1, 400, `{"code":"invalid_request","detail":"no"}`, [][]string{{failed + `"x"}`}}},
		{"a response without states", answer, 1, 200, noJobs, again},
		{"two by the dispatcher", answer, 2, 400, `{"code":"invalid_request"}`, alone},
		{"by a proxy as too large", answer, 1, 413, page, again},
		{"two by a proxy as too large", answer, 2, 413, page, alone},
		{"by a proxy as malformed", answer, 1, 400, page, again},
		{"by a proxy with JSON", answer, 1, 400, `{"code":400}`, again},
		{"by a proxy as forbidden", answer, 1, 403, page, again},
		{"too many requests", answer, 1, 429, `{"code":"too_many"}`, again},
		{"not now", answer, 1, 503, `{"code":"unavailable"}`, again},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got [][]string
			w, tasks, _ := newWorker(test.jobs, func(_ context.Context, _, body string) (int, string, error) {
				got = append(got, outcomes.FindAllString(body, -1))
				if len(got) == 1 {
					return test.status, test.body, nil
				}
				return 200, settledAll(body), nil
			})
			w.settle(t.Context(), settlements(tasks, test.outcome), false)
			equal(t, test.name+": requests", got, test.want)
			if err := w.failure(); (err != nil) != (test.outcome == failure) || len(w.held) > 0 {
				t.Errorf("%s: the worker has the error %v and holds %d jobs", test.name, err, len(w.held))
			}
		})
	}
}

// outcomes are what the settlements in a request have besides their ids.
var outcomes = regexp.MustCompile(`"outcome":"\w+","\w+":\{[^}]*\}`)

// TestLogOfJobs: the log says which jobs were claimed, how they ended, and why if they did not succeed.
func TestLogOfJobs(t *testing.T) {
	t.Parallel()
	w, tasks, log := newWorker(1, func(_ context.Context, _, body string) (int, string, error) {
		return 200, settledAll(body), nil
	})
	w.claimed(tasks)
	w.settle(t.Context(), settlements(tasks, Noted{Failed{"exit_3", "last"}, []any{"ms", 7}}), false)
	w.settle(t.Context(), settlements(tasks, Throttled{Message: "the provider answered 503"}), false)
	equal(t, "log", log.String(), `{"level":"INFO","msg":"claimed","jobs":1,"attempts":[{"id":"job_0","attempt":1}]}
{"level":"INFO","msg":"job","id":"job_0","attempt":1,"outcome":"failed","state":"settled","code":"exit_3","message":"last","ms":7}
{"level":"INFO","msg":"job","id":"job_0","attempt":1,"outcome":"throttled","state":"settled","message":"the provider answered 503"}
`)
}

// TestSettlementsShareRequests: results that have collected are settled together, up to 500 jobs and 1 MB, so that a slow
// connection can take them in the time that the dispatcher allows. A larger one is sent alone.
func TestSettlementsShareRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		jobs  int
		bytes int // of each answer
		want  []int
	}{
		{3, 10, []int{3}},
		{501, 10, []int{500, 1}},
		{3, 400_000, []int{2, 1}},
		{2, 3 << 20, []int{1, 1}},
	} {
		var got []int
		w, tasks, _ := newWorker(test.jobs, func(_ context.Context, _, body string) (int, string, error) {
			got = append(got, strings.Count(body, `"outcome"`))
			return 200, settledAll(body), nil
		})
		w.results = make(chan settlement, test.jobs)
		for _, s := range settlements(tasks, Completed{Raw: json.RawMessage(`"` + strings.Repeat("x", test.bytes) + `"`)}) {
			w.results <- s
		}
		close(w.results)
		w.settleAll(t.Context())
		equal(t, "jobs in each request", got, test.want)
		equal(t, "jobs that are held", len(w.held), 0)
	}
}

// TestLostServerDelaysOneAccount: jobs of other accounts are renewed and settled while a lost server has an account's data.
func TestLostServerDelaysOneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := time.Now().Add(time.Minute)
		w, tasks, _ := newWorker(3, func(_ context.Context, _, body string) (int, string, error) {
			if time.Now().Before(found) && strings.Contains(body, `"job_0"`) {
				return 503, `{"code":"unavailable"}`, nil
			}
			return 200, settledAll(body), nil
		})
		w.cfg.Parallel, tasks[0].AccountID = 2, "acct_lost"
		failed, _ := w.renewOnce(t.Context(), attempts(tasks))
		equal(t, "jobs that are not renewed", failed, attempts(tasks[:1]))
		w.settle(t.Context(), settlements(tasks, Released{}), false)
		synctest.Wait()
		equal(t, "jobs that are not settled", w.byAccount(attempts(tasks)), map[string][]attempt{"acct_lost": attempts(tasks[:1])})
		w.apart.Wait()
		equal(t, "jobs that are not settled after the server is back", len(w.held), 0)
	})
}

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
			equal(t, "released jobs", int(released.Load()), test.released)
		})
	}
}
