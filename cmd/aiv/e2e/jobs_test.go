package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A job is what a worker claims.
type job struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
}

// A workerClient calls the worker interface of a dispatcher.
type workerClient struct {
	base, token string
	http        *http.Client
}

// newWorkerClient creates a worker.
func newWorkerClient(t *testing.T, databaseURL string, dispatch *process) *workerClient {
	t.Helper()
	return &workerClient{dispatch.base, newWorker(t, databaseURL).Token, client}
}

// A refusal is a response with another status than 200.
type refusal struct {
	route string
	answer
}

func (e *refusal) Error() string { return fmt.Sprintf("%s: %d %s", e.route, e.status, e.body) }

// unavailable reports whether a request got 503 with Retry-After.
func unavailable(err error) bool {
	e, ok := errors.AsType[*refusal](err)
	return ok && e.status == http.StatusServiceUnavailable && e.header.Get("Retry-After") != ""
}

// jobsOf sends a request of a worker and returns the jobs of its response. For another status than 200 the error is a
// *refusal.
func jobsOf[T any](ctx context.Context, w *workerClient, route, body string) ([]T, error) {
	a, err := request(ctx, w.http, "POST", w.base+route, w.token, "", body)
	if err == nil && a.status != http.StatusOK {
		err = &refusal{route, a}
	}
	if err != nil {
		return nil, err
	}
	var out struct{ Jobs []T }
	err = json.Unmarshal([]byte(a.body), &out)
	return out.Jobs, err
}

// claim claims jobs of any provider for longer than a test takes.
func (w *workerClient) claim(limit, wait int) ([]job, error) {
	return w.claimFor("null", limit, wait, 600)
}

func (w *workerClient) claimFor(providers string, limit, wait, lease int) ([]job, error) {
	return jobsOf[job](context.Background(), w, "/claim", claimOf(providers, limit, wait, lease))
}

func claimOf(providers string, limit, wait, lease int) string {
	return fmt.Sprintf(`{"providers":%s,"limit":%d,"wait_seconds":%d,"lease_seconds":%d}`, providers, limit, wait, lease)
}

// answerText is the text by which an answer is recognized.
func answerText(j job) string { return fmt.Sprintf("of %s in attempt %d", j.ID, j.Attempt) }

// settle reports jobs as completed, by answers with these texts, and returns their states.
func (w *workerClient) settle(ctx context.Context, jobs []job, text func(job) string) (states []string, err error) {
	var settled []string
	for _, j := range jobs {
		settled = append(settled, fmt.Sprintf(`{"id":%q,"attempt":%d,"outcome":"completed","answer":{"text":%q,"citations":[{"url":"https://www.example.org/a",`+
			`"title":null}],"search_queries":["q"],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}}`, j.ID, j.Attempt, text(j)))
	}
	out, err := jobsOf[struct{ State string }](ctx, w, "/settle", `{"jobs":[`+strings.Join(settled, ",")+`]}`)
	for _, o := range out {
		states = append(states, o.State)
	}
	return states, err
}

// claims claims jobs, for which it waits, and fails the test unless it gets the wanted number.
func (w *workerClient) claims(t *testing.T, limit, want int) []job {
	t.Helper()
	jobs, err := w.claim(limit, 20)
	if err != nil || len(jobs) != want {
		t.Fatalf("claimed %d jobs, %v; want %d", len(jobs), err, want)
	}
	return jobs
}

// settles reports jobs as completed, and fails the test unless they are settled.
func (w *workerClient) settles(t *testing.T, jobs []job) {
	t.Helper()
	states, err := w.settle(t.Context(), jobs, answerText)
	if err != nil || len(states) != len(jobs) || slices.ContainsFunc(states, func(s string) bool { return s != "settled" }) {
		t.Errorf("settled: %v, %v", states, err)
	}
}

// TestRunIsWorkedThroughBothServices: a customer's run is claimed and settled by a worker, through both services, and
// is completed. A claim that waits gets its response when the dispatcher ends.
func TestRunIsWorkedThroughBothServices(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url, "-drain", "29s")
	w := newWorkerClient(t, url, dispatch)
	dispatch.hasMetrics(t, `aiv_jobs_claimed_total{provider="p"} 0`) // before the first claim

	id := serve.order(t, key.Key, "jobs")
	first := w.claims(t, 4, 4)
	serve.lists(t, key.Key, id, "running")
	second := w.claims(t, 100, 2)
	for range 2 { // the second time changes nothing
		w.settles(t, first)
		w.settles(t, second)
	}
	serve.lists(t, key.Key, id, "completed")
	hasSamples(t, dispatch.databaseMetrics(t), map[string]float64{
		`aiv_jobs_claimed_total{provider="p"}`: 6, `aiv_jobs_settled_total{provider="p",outcome="completed"}`: 6,
		`aiv_jobs_waiting{provider="p"}`: 0, `aiv_jobs_leased{provider="p"}`: 0, "aiv_job_start_seconds_count": 6,
		`aiv_task_runs_total{task="purge_events",result="failed"}`: 0, `aiv_task_runs_total{task="end_leases",result="failed"}`: 0,
		`aiv_requests_total{route="POST /worker/v1/claim",status="200"}`: 2,
		`aiv_request_seconds_count{route="POST /worker/v1/settle"}`:      4,
	})

	// The claim would wait for longer than -drain, and then the dispatcher would end with an error.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if jobs, err := w.claim(1, 30); err != nil || len(jobs) != 0 {
			t.Errorf("a claim that waited at the end: %v, %v", jobs, err)
		}
	}()
	dispatch.hasMetrics(t, "aiv_claims_waiting 1")
	stops(t, dispatch)
	<-ended
}
