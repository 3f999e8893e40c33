package work

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newWorker returns a worker that holds a number of jobs, for tests that call its parts.
func newWorker(url string, log *slog.Logger, jobs int) (*worker, []*task) {
	w := &worker{cfg: Config{Log: log}, client: newClient(url, "x"), held: make(map[string]*task), stop: func() {}, hard: context.Background()}
	tasks := make([]*task, jobs)
	for i := range tasks {
		tasks[i] = &task{Job: Job{ID: fmt.Sprint("job_", i), Attempt: int64(i + 1)}}
	}
	w.hold(tasks, time.Now().Add(time.Hour))
	return w, tasks
}

// TestRefusedAnswers: an answer that the dispatcher refuses fails its job; one that a proxy refuses is sent again.
func TestRefusedAnswers(t *testing.T) {
	t.Parallel()
	const page = "<html>no</html>"
	for _, test := range []struct {
		name   string
		jobs   int
		status int // of the first response
		body   string
		want   []string // the outcomes in each request
	}{
		{"by the dispatcher", 1, 400, `{"code":"invalid_request","errors":[{"pointer":"#/jobs/0/answer/text","detail":"is long"}]}`,
			[]string{"completed", "failed: text is long"}},
		{"by the dispatcher without pointers", 1, 413, `{"code":"body_too_large","detail":"It is long."}`, []string{"completed", "failed: It is long."}},
		{"a response without states", 1, 200, `{"jobs":[]}`, []string{"completed", "completed"}},
		{"two by the dispatcher", 2, 400, `{"code":"invalid_request"}`, []string{"completed, completed", "completed", "completed"}},
		{"by a proxy as too large", 1, 413, page, []string{"completed", "completed"}},
		{"two by a proxy as too large", 2, 413, page, []string{"completed, completed", "completed", "completed"}},
		{"by a proxy as malformed", 1, 400, page, []string{"completed", "completed"}},
		{"by a proxy with JSON", 1, 400, `{"code":400}`, []string{"completed", "completed"}},
		{"by a proxy as forbidden", 1, 403, page, []string{"completed", "completed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string // the server gets one request at a time
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body struct {
					Jobs []struct {
						Outcome string
						Error   failure
					}
				}
				json.NewDecoder(r.Body).Decode(&body)
				var outcomes []string
				for _, j := range body.Jobs {
					if j.Error.Code != "" {
						j.Outcome += ": " + j.Error.Message
					}
					outcomes = append(outcomes, j.Outcome)
				}
				if got = append(got, strings.Join(outcomes, ", ")); len(got) == 1 {
					w.WriteHeader(test.status)
					fmt.Fprint(w, test.body)
					return
				}
				fmt.Fprintf(w, `{"jobs":[%s]}`, strings.Repeat(`,{"state":"settled"}`, len(body.Jobs))[1:])
			}))
			t.Cleanup(server.Close)
			w, tasks := newWorker(server.URL, slog.New(slog.DiscardHandler), test.jobs)
			var batch []settlement
			for _, tk := range tasks {
				batch = append(batch, newSettlement(tk, Completed{Raw: json.RawMessage("{}")}))
			}
			w.settle(context.Background(), batch)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if err := w.failure(); err != nil || len(w.held) > 0 {
				t.Errorf("the worker has the error %v and holds %d jobs, want none", err, len(w.held))
			}
		})
	}
}

// TestRefusedFailure: a dispatcher that refuses a failure ends the worker.
func TestRefusedFailure(t *testing.T) {
	t.Parallel()
	w, tasks := newWorker("http://dispatcher", slog.New(slog.DiscardHandler), 1)
	requests := 0
	w.client.http.Transport = dispatcher(func(string, string) (int, string, error) {
		if requests++; requests > 3 {
			panic("the worker sends a refused failure again and again")
		}
		return http.StatusBadRequest, `{"code":"invalid_request","detail":"no"}`, nil
	})
	w.settle(context.Background(), []settlement{newSettlement(tasks[0], Failed{"invalid_answer", "x"})})
	if err := w.failure(); err == nil || !strings.Contains(err.Error(), "invalid_request") || requests != 1 || len(w.held) > 0 {
		t.Errorf("the worker ended with %v after %d requests and holds %d jobs", err, requests, len(w.held))
	}
}

// TestSettlementsShareRequests: results that have collected are settled together, up to 500 jobs and 7 MiB.
func TestSettlementsShareRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		jobs  int
		bytes int // of each answer
		want  []int
	}{
		{"few", 3, 10, []int{3}},
		{"many", 501, 10, []int{500, 1}},
		{"large", 3, 3 << 20, []int{2, 1}},
	} {
		w, tasks := newWorker("http://dispatcher", slog.New(slog.DiscardHandler), test.jobs)
		var got []int
		w.client.http.Transport = dispatcher(func(_, body string) (int, string, error) {
			n := strings.Count(body, `"outcome"`)
			got = append(got, n)
			return 200, `{"jobs":[` + strings.Repeat(`,{"state":"settled"}`, n)[1:] + `]}`, nil
		})
		w.results = make(chan settlement, test.jobs)
		answer := json.RawMessage(`"` + strings.Repeat("x", test.bytes) + `"`)
		for _, tk := range tasks {
			w.results <- newSettlement(tk, Completed{Raw: answer})
		}
		close(w.results)
		w.settleAll(context.Background())
		if diff := cmp.Diff(test.want, got); diff != "" || len(w.held) > 0 {
			t.Errorf("%s: %d jobs are held, jobs in each request (-want +got):\n%s", test.name, len(w.held), diff)
		}
	}
}
