package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dispatcher is a transport that responds to the requests of a worker.
type dispatcher func(route, body string) (status int, response string, err error)

func (d dispatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, response, err := d(strings.TrimPrefix(r.URL.Path, "/worker/v1"), string(body))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(response)), Request: r}, nil
}

// TestJobIsLostWithItsLease: a job is lost when its lease ends or the dispatcher says so, and not when another attempt of it is lost.
func TestJobIsLostWithItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, logged := newLog()
		w, tasks := newWorker("http://dispatcher", log, 6) // for an hour
		renewed, ended, canceled, other, released, before := tasks[0], tasks[1], tasks[2], tasks[3], tasks[4], tasks[5]
		again := &task{Job: Job{ID: before.ID, Attempt: before.Attempt + 1}}
		w.hold([]*task{again}, time.Now().Add(time.Hour))
		w.release(before)
		time.Sleep(30 * time.Minute)
		later := time.Now().Add(time.Hour)
		w.renewed(renewed.ID, renewed.Attempt, "held", later)
		w.renewed(canceled.ID, canceled.Attempt, "canceled", later)
		w.renewed(other.ID, other.Attempt+1, "lost", later)
		w.renewed(again.ID, again.Attempt, "held", later)
		w.renewed("job_unknown", 1, "lost", later)
		w.release(released)
		for _, test := range []struct {
			name string
			task *task
			want error // before the lease would have ended
			end  error // after that
		}{
			{"renewed", renewed, nil, nil},
			{"not renewed", ended, nil, errLost},
			{"canceled", canceled, errLost, errLost},
			{"another attempt lost", other, nil, errLost},
			{"released", released, context.Canceled, context.Canceled},
			{"an earlier attempt", before, errLost, errLost},
			{"a later attempt", again, nil, nil},
		} {
			if got := context.Cause(test.task.ctx); got != test.want {
				t.Errorf("%s: got %v, want %v", test.name, got, test.want)
			}
			defer func() {
				if got := context.Cause(test.task.ctx); got != test.end {
					t.Errorf("%s, after the lease: got %v, want %v", test.name, got, test.end)
				}
				w.release(test.task)
			}()
		}
		time.Sleep(45 * time.Minute)
		synctest.Wait() // until the ends of leases are logged
		if strings.Contains(logged.String(), released.ID) {
			t.Errorf("the job that was released is lost later: %s", logged)
		}
	})
}

// TestLeasesAreRenewedInTime: all leases are renewed three times in their time, and soon again if that failed, in requests of 500
// jobs at most.
func TestLeasesAreRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, tasks := newWorker("http://dispatcher", slog.New(slog.DiscardHandler), 501)
		w.cfg.Lease = time.Minute
		start := time.Now()
		var got []string
		w.client.http.Transport = dispatcher(func(route, body string) (int, string, error) {
			var sent struct {
				Jobs []struct {
					ID      string
					Attempt int64
				}
				Seconds int `json:"lease_seconds"`
			}
			if err := json.Unmarshal([]byte(body), &sent); err != nil {
				return 0, "", err
			}
			if got = append(got, fmt.Sprint(time.Since(start), route, sent.Seconds, len(sent.Jobs))); len(got) == 1 {
				return 0, "", errors.New("refused")
			}
			var states []string
			for _, j := range sent.Jobs {
				states = append(states, fmt.Sprintf(`{"id":%q,"attempt":%d,"state":"held"}`, j.ID, j.Attempt))
			}
			return 200, `{"jobs":[` + strings.Join(states, ",") + `]}`, nil
		})
		for _, tk := range tasks {
			w.renewed(tk.ID, tk.Attempt, "held", start.Add(w.cfg.Lease))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go w.renew(ctx)
		time.Sleep(65 * time.Second)
		cancel()
		synctest.Wait()
		var want []string
		for _, r := range []struct{ at, jobs int }{{20, 500}, {21, 500}, {21, 1}, {41, 500}, {41, 1}, {61, 500}, {61, 1}} {
			want = append(want, fmt.Sprint(time.Duration(r.at)*time.Second, "/heartbeat", 60, r.jobs))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if slices.ContainsFunc(tasks, func(tk *task) bool { return tk.ctx.Err() != nil }) {
			t.Error("a lease was lost")
		}
		for _, tk := range tasks {
			w.release(tk)
		}
	})
}
