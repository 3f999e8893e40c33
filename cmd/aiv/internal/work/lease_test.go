package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestJobIsLostWithItsLease: a job is lost when its lease ends or the dispatcher says so, and not when another attempt
// of it is lost.
func TestJobIsLostWithItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, tasks, logged := newWorker(6, nil) // for an hour
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
		states := func() string {
			var all []any
			for _, tk := range []*task{renewed, ended, canceled, other, released, before, again} {
				all = append(all, context.Cause(tk.ctx))
			}
			return fmt.Sprint(all)
		}
		equal(t, "before the leases would have ended", states(), fmt.Sprint([]any{nil, nil, errLost, nil, context.Canceled, errLost, nil}))
		time.Sleep(45 * time.Minute)
		synctest.Wait() // until the ends of leases are logged
		equal(t, "after that", states(), fmt.Sprint([]any{nil, errLost, errLost, errLost, context.Canceled, errLost, nil}))
		if strings.Contains(logged.String(), released.ID) {
			t.Errorf("the job that was released is lost later: %s", logged)
		}
		for _, tk := range []*task{renewed, again} {
			w.release(tk)
		}
	})
}

// TestLeasesAreRenewedInTime: all leases are renewed three times in their time, in requests of up to 500 jobs. A request
// that gets no answer delays no others, and is repeated soon.
func TestLeasesAreRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var got []string
		w, tasks, _ := newWorker(501, func(ctx context.Context, route, body string) (int, string, error) {
			const head = `{"jobs":[`
			jobs, ok := strings.CutSuffix(strings.TrimPrefix(body, head), `],"lease_seconds":60}`)
			if !ok {
				return 0, "", errors.New("another body")
			}
			n := strings.Count(jobs, "}")
			mu.Lock()
			got = append(got, fmt.Sprintf("%02.0f s%s %d", time.Since(start).Seconds(), route, n))
			hangs := n == 500 && len(got) <= 2
			mu.Unlock()
			if hangs {
				<-ctx.Done()
				return 0, "", ctx.Err()
			}
			return 200, head + strings.ReplaceAll(jobs, "}", `,"state":"held"}`) + `]}`, nil
		})
		for _, tk := range tasks {
			w.renewed(tk.ID, tk.Attempt, "held", start.Add(w.cfg.Lease))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go w.renew(ctx)
		time.Sleep(65 * time.Second)
		cancel()
		synctest.Wait()
		slices.Sort(got)
		want := []string{
			"20 s/heartbeat 1", "20 s/heartbeat 500", "31 s/heartbeat 500", "40 s/heartbeat 1", "40 s/heartbeat 500",
			"60 s/heartbeat 1", "60 s/heartbeat 500",
		}
		equal(t, "requests", got, want)
		if slices.ContainsFunc(tasks, func(tk *task) bool { return tk.ctx.Err() != nil }) {
			t.Error("a lease was lost")
		}
		for _, tk := range tasks {
			w.release(tk)
		}
	})
}
