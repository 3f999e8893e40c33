package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A job is what a worker claims.
type job struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	RunID   string `json:"run_id"`
}

// A workerClient calls the worker interface of a dispatcher.
type workerClient struct{ base, token string }

// A refusal is a response with another status than 200.
type refusal struct {
	url        string
	status     int
	retryAfter string
	body       string
}

func (e *refusal) Error() string { return fmt.Sprintf("%s: %d %s", e.url, e.status, e.body) }

// unavailable reports whether a request got 503 with Retry-After.
func unavailable(err error) bool {
	e, ok := errors.AsType[*refusal](err)
	return ok && e.status == http.StatusServiceUnavailable && e.retryAfter != ""
}

// call sends a request and decodes the response's jobs into out.
func (w *workerClient) call(ctx context.Context, route string, body, out any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	raw, err := post(ctx, client, w.base+route, w.token, string(sent))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, &struct{ Jobs any }{out})
}

// post sends a request and returns the response. For another status than 200 the error is a *refusal.
func post(ctx context.Context, client *http.Client, url, token, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &refusal{url, response.StatusCode, response.Header.Get("Retry-After"), string(raw)}
	}
	return raw, err
}

// claim claims jobs for longer than a test takes.
func (w *workerClient) claim(limit, wait int) (jobs []job, err error) {
	return w.claimFor(limit, wait, 600)
}

func (w *workerClient) claimFor(limit, wait, lease int) (jobs []job, err error) {
	body := map[string]any{"limit": limit, "lease_seconds": lease, "providers": nil, "wait_seconds": wait}
	err = w.call(context.Background(), "/claim", body, &jobs)
	return jobs, err
}

// settle reports jobs as completed and returns their states.
func (w *workerClient) settle(ctx context.Context, jobs []job) (states []string, err error) {
	return w.answer(ctx, jobs, answerText)
}

// answerText is the text by which an answer is recognized.
func answerText(j job) string { return fmt.Sprintf("of %s in attempt %d", j.ID, j.Attempt) }

// answer is settle with the texts of the answers.
func (w *workerClient) answer(ctx context.Context, jobs []job, text func(job) string) (states []string, err error) {
	var settled []map[string]any
	for _, j := range jobs {
		settled = append(settled, map[string]any{"id": j.ID, "attempt": j.Attempt, "outcome": "completed", "answer": map[string]any{
			"text": text(j), "citations": []any{map[string]any{"url": "https://www.example.org/a", "title": nil}},
			"search_queries": []string{"q"}, "model_version": nil, "answered_at": time.Now().UTC().Format(time.RFC3339)}})
	}
	var out []struct{ State string }
	if err := w.call(ctx, "/settle", map[string]any{"jobs": settled}, &out); err != nil {
		return nil, err
	}
	for _, o := range out {
		states = append(states, o.State)
	}
	return states, nil
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
	states, err := w.settle(t.Context(), jobs)
	if err != nil || len(states) != len(jobs) || slices.ContainsFunc(states, func(s string) bool { return s != "settled" }) {
		t.Errorf("settled: %v, %v", states, err)
	}
}

// TestRunIsWorkedThroughBothServices: a customer's run is claimed and settled by a worker, through both services, and
// is completed. Each request of the worker is logged.
func TestRunIsWorkedThroughBothServices(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url, "-drain", "29s")
	worker := newWorker(t, url)
	w := &workerClient{dispatch.base, worker.Token}

	dispatch.hasMetrics(t, `aiv_jobs_claimed_total{provider="p"} 0`) // before the first claim

	id := serve.order(t, key.Key, "jobs")
	read := func(want string) {
		t.Helper()
		if a := serve.get(t, "/v1/runs/"+id, key.Key); member(t, a.body, "status") != want {
			t.Errorf("the run is %s, want %s", a.body, want)
		}
	}
	first := w.claims(t, 4, 4)
	read("running")
	second := w.claims(t, 100, 2)
	for range 2 { // the second time changes nothing
		w.settles(t, first)
		w.settles(t, second)
	}
	read("completed")
	cli[any](t, url, "verify")

	e := dispatch.databaseMetrics(t)
	e.explained(t)
	for sample, want := range map[string]float64{
		`aiv_jobs_claimed_total{provider="p"}`: 6, `aiv_jobs_settled_total{provider="p",outcome="completed"}`: 6,
		`aiv_jobs_waiting{provider="p"}`: 0, `aiv_jobs_leased{provider="p"}`: 0, "aiv_job_start_seconds_count": 6,
		`aiv_task_runs_total{task="purge_events",result="failed"}`: 0, `aiv_task_runs_total{task="end_leases",result="failed"}`: 0,
		`aiv_requests_total{route="POST /worker/v1/claim",status="200"}`: 2,
		`aiv_request_seconds_count{route="POST /worker/v1/settle"}`:      4,
		`go_sched_gomaxprocs_threads`:                                    float64(runtime.GOMAXPROCS(0)),
	} {
		if e.values[sample] != want {
			t.Errorf("%s is %v, want %v", sample, e.values[sample], want)
		}
	}

	// SIGTERM answers a claim that waits: it would wait for longer than -drain, and then the dispatcher would end with
	// an error.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if jobs, err := w.claim(1, 30); err != nil || len(jobs) != 0 {
			t.Errorf("a claim that waited at the end: %v, %v", jobs, err)
		}
	}()
	dispatch.awaitClaims(t, 1)
	stops(t, dispatch)
	<-ended
	for route, want := range map[string]int{"claim": 3, "settle": 4} {
		line := regexp.MustCompile(`"route":"POST /worker/v1/` + route + `","status":200.*"worker":"` + worker.ID + `"`)
		if n := len(line.FindAllString(dispatch.log.String(), -1)); n != want {
			t.Errorf("%d requests to %s are logged, want %d", n, route, want)
		}
	}
}
