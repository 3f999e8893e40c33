package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

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
