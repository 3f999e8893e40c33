package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLimitOverTwoProcesses: two processes share a limit. One is killed while it serves requests, and started again.
// Each window admits exactly its limit; only requests in flight at the kill may be counted without a response.
func TestLimitOverTwoProcesses(t *testing.T) {
	t.Parallel()
	const limit, requests, clients = 100, 2000, 64
	url, pool, _, key := databaseOfCustomer(t, limit)
	processes := []*process{startServe(t, url), startServe(t, url)}

	type window struct{ admitted, refused int }
	windows := make(map[int]*window)
	var mu sync.Mutex
	inFlight := 0 // requests that the kill cut off
	send := func(p *process) error {
		a, err := p.do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if errors.Is(err, errCutOff) {
				inFlight++
			}
			return err
		}
		reset, err := strconv.Atoi(a.header.Get("X-RateLimit-Reset"))
		if err != nil {
			t.Error(err)
		}
		if windows[reset] == nil {
			windows[reset] = &window{}
		}
		switch a.status {
		case 200:
			windows[reset].admitted++
		case 429:
			windows[reset].refused++
		default:
			t.Errorf("got %d %s", a.status, a.body)
		}
		return nil
	}

	var wg sync.WaitGroup
	served := make(chan struct{}, clients)
	for range clients {
		wg.Go(func() {
			for n := 0; send(processes[1]) == nil; n++ { // until the process is killed
				if n == 0 {
					served <- struct{}{}
				}
			}
		})
	}
	for range clients / 4 {
		<-served
	}
	processes[1].kill()
	wg.Wait()
	if inFlight == 0 {
		t.Error("no request was in flight when the process was killed")
	}
	cut := inFlight

	processes[1] = startServe(t, url)
	for i := range requests {
		wg.Go(func() {
			if err := send(processes[i%2]); err != nil {
				t.Errorf("a request after the restart: %v", err)
			}
		})
	}
	wg.Wait()
	for reset, w := range windows {
		used := number(t, pool, `SELECT used FROM api_rate_limit_buckets WHERE window_start = to_timestamp($1::bigint - 60)`, reset)
		if used > limit || w.refused > 0 && used != limit || w.admitted > used || w.admitted < used-cut {
			t.Errorf("window until %d: %d admitted and %d refused; %d counted of a limit of %d; %d requests were cut off",
				reset, w.admitted, w.refused, used, limit, cut)
		}
	}
}

// TestQuotaOverTwoProcesses: 64 clients fill an account's month through two processes, one of which is killed in the
// middle. The month gets exactly its quota: no job more, and no run that fits is rejected.
func TestQuotaOverTwoProcesses(t *testing.T) {
	t.Parallel()
	const clients, quota = 64, 1801 // 300 runs of 6 jobs, and 1 job
	url, pool, account, key := databaseOfCustomer(t, 1_000_000)
	cli[any](t, url, "accounts", "set-quota", account, "-jobs-per-month", fmt.Sprint(quota))
	processes := []*process{startServe(t, url), startServe(t, url)}

	oneJob := strings.NewReplacer(`["q1","q2"]`, `["q1"]`, `"repetitions":3`, `"repetitions":1`).Replace(testRun)
	var accepted atomic.Int64 // jobs
	killed := make(chan struct{})
	var kill sync.Once
	// create sends a run until it is answered, to the other process after an error, and reports whether it was
	// accepted.
	create := func(client int, name, body string) bool {
		for try := client; ; try++ {
			a, err := processes[try%2].do(t.Context(), "POST", "", key.Key, name, body)
			switch {
			case err != nil:
				if t.Context().Err() != nil {
					return false
				}
			case a.status == http.StatusAccepted:
				var run struct {
					Jobs int64 `json:"total_jobs"`
				}
				if err := json.Unmarshal([]byte(a.body), &run); err != nil {
					t.Error(err)
				}
				if accepted.Add(run.Jobs) > quota/2 {
					kill.Do(func() { processes[1].kill(); close(killed) })
				}
				return true
			case a.status == http.StatusForbidden && strings.Contains(a.body, `"code":"job_quota_exceeded"`):
				return false
			default:
				t.Errorf("got %d %s", a.status, a.body)
				return false
			}
		}
	}
	for _, round := range []struct{ name, body string }{{"six", testRun}, {"one", oneJob}} {
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for n := 0; create(c, fmt.Sprintf("%s-%d-%d", round.name, c, n), round.body); n++ {
				}
			})
		}
		wg.Wait()
	}
	select {
	case <-killed:
	default:
		t.Error("no process was killed")
	}
	counted := number(t, pool, `SELECT jobs_ordered FROM account_months`)
	written := number(t, pool, `SELECT count(*) FROM measurement_jobs`)
	if accepted.Load() != quota || counted != quota || written != quota {
		t.Errorf("%d jobs accepted, %d counted, %d written; want %d", accepted.Load(), counted, written, quota)
	}
}
