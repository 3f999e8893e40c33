package work

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// A dispatcher responds to the requests of workers. It is the transport of a worker's parts, and the handler of a
// server for Run.
type dispatcher func(ctx context.Context, route, body string) (status int, response string, err error)

func (d dispatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, response, err := d(r.Context(), strings.TrimPrefix(r.URL.Path, "/worker/v1"), string(body))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(response)), Request: r}, nil
}

func (d dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := d.RoundTrip(r)
	if err != nil {
		return
	}
	w.WriteHeader(response.StatusCode)
	io.Copy(w, response.Body)
}

const (
	noJobs = `{"jobs":[]}`
	oneJob = `{"jobs":[{"id":"job_1","attempt":1}]}`
)

// settledAll is the response to the settlements in a body.
func settledAll(body string) string {
	return `{"jobs":[` + strings.Repeat(`,{"state":"settled"}`, strings.Count(body, `"attempt"`))[1:] + `]}`
}

// config returns the configuration of a worker for a dispatcher that ends with the test.
func config(t *testing.T, d dispatcher, parallel int, e Executor) Config {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return Config{
		URL: server.URL, Token: "x", Parallel: parallel, Lease: time.Hour, Kill: context.Background(), Executor: e,
		Log: slog.New(slog.DiscardHandler),
	}
}

func shell(script string, args ...string) Command {
	return Command{Args: append([]string{"sh", "-c", script}, args...)}
}

// newWorker returns a worker that holds a number of jobs, for tests that call its parts, and its log as JSON without
// times.
func newWorker(jobs int, d dispatcher) (w *worker, tasks []*task, log *bytes.Buffer) {
	log = new(bytes.Buffer)
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	w = &worker{
		cfg: Config{Log: slog.New(slog.NewJSONHandler(log, options)), Lease: time.Minute}, client: newClient("http://dispatcher", "x"),
		held: make(map[string]*task), stop: func() {}, hard: context.Background(),
	}
	w.client.http.Transport = d
	for i := range jobs {
		tasks = append(tasks, &task{Job: Job{ID: fmt.Sprint("job_", i), Attempt: int64(i + 1)}})
	}
	w.hold(tasks, time.Now().Add(time.Hour))
	return w, tasks, log
}

// equal compares what a test got with what it wants.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	storetest.Equal(t, want, got, what)
}

// awaitFile waits for a file until ctx is done, and reports whether it exists.
func awaitFile(ctx context.Context, file string) bool {
	for ; ctx.Err() == nil; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// TestEndWhileSettlementsFail: a worker whose results wait for one another, because the dispatcher takes none, claims
// no more jobs. It ends after SIGTERM, at the end of the drain or a second signal, and settles all results if the
// dispatcher takes them by then.
func TestEndWhileSettlementsFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		drain        time.Duration
		kill, settle bool // after SIGTERM: a second signal comes, the dispatcher settles
	}{
		{"the drain ends", time.Millisecond, false, false},
		{"a second signal", time.Hour, true, false},
		{"the dispatcher recovers after the drain", time.Millisecond, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			kill, endKill := context.WithCancel(t.Context())
			var claims, settlements, settled atomic.Int64
			first := make(chan struct{}) // closed at the first settlement
			cfg := config(t, func(_ context.Context, route, body string) (int, string, error) {
				if route == "/claim" {
					n := claims.Add(1)
					if n == 2 { // the first result leaves the queue, the second fills it, the third waits
						<-first
					}
					return 200, fmt.Sprintf(`{"jobs":[{"id":"job_%d","attempt":1}]}`, n), nil
				}
				switch n := settlements.Add(1); {
				case n == 1:
					close(first)
				case test.settle && ctx.Err() != nil:
					settled.Add(int64(strings.Count(body, `"outcome"`)))
					return 200, settledAll(body), nil
				case n >= 3 && claims.Load() >= 3:
					cancel()
					if test.kill {
						endKill()
					}
				}
				return 503, "", nil
			}, 1, executorFunc(func(context.Context, Job) Outcome { return Retry{Code: "temporary"} }))
			cfg.Drain, cfg.Kill = test.drain, kill
			if !test.settle {
				cfg.settleTime = 100 * time.Millisecond
			}
			err := Run(ctx, cfg)
			if (err == nil) != test.settle || test.settle && settled.Load() != 3 || claims.Load() != 3 {
				t.Errorf("the worker ended with %v after %d claims; %d jobs are settled", err, claims.Load(), settled.Load())
			}
		})
	}
}
