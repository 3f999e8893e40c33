package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestLimitAndQuotaOverTwoProcesses: 64 clients spend a limit and fill an account's month through two processes, one of
// which is killed in the middle. Each window admits exactly its limit; only requests in flight at the kill may be
// counted without a response. The month gets exactly its quota: no job more, and no run that fits is rejected.
func TestLimitAndQuotaOverTwoProcesses(t *testing.T) {
	t.Parallel()
	const clients, limit, quota = 64, 100, 1801 // 300 runs of 6 jobs, and 1 job
	url, pool, account, key := databaseOfCustomer(t)
	limited := newKey(t, url, account, limit)
	cli[any](t, url, "accounts", "set-quota", account, "-jobs-per-month", fmt.Sprint(quota))
	processes := []*process{startServe(t, url), startServe(t, url)}

	var mu sync.Mutex
	type window struct{ admitted, refused int }
	windows := make(map[string]window) // by reset
	accepted, cut, killed := 0, 0, false
	spend := func(try int) {
		a, err := processes[try%2].do(t.Context(), "GET", "?path=/v1/me", limited.Key, "", "")
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, errCutOff) {
			cut++
		}
		w := windows[a.header.Get("X-RateLimit-Reset")]
		switch {
		case err != nil:
			return
		case a.status == http.StatusOK:
			w.admitted++
		case a.status == http.StatusTooManyRequests:
			w.refused++
		case a.status == http.StatusServiceUnavailable: // too slow; it may have been counted
			cut++
			return
		default:
			t.Errorf("got %d %s", a.status, a.body)
		}
		windows[a.header.Get("X-RateLimit-Reset")] = w
	}
	// create sends a run until it is answered, to the other process after an error, and reports whether it was
	// accepted.
	create := func(try int, name, body string) bool {
		a, err := processes[try%2].do(t.Context(), "POST", "", key.Key, name, body)
		for ; (err != nil || a.status == http.StatusServiceUnavailable) && t.Context().Err() == nil; try++ {
			a, err = processes[(try+1)%2].do(t.Context(), "POST", "", key.Key, name, body)
		}
		if a.status == http.StatusForbidden && strings.Contains(a.body, `"code":"job_quota_exceeded"`) {
			return false
		}
		var run struct {
			Jobs int `json:"total_jobs"`
		}
		if err := json.Unmarshal([]byte(a.body), &run); err != nil || a.status != http.StatusAccepted {
			t.Errorf("got %d %s, %v", a.status, a.body, err)
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if accepted += run.Jobs; accepted > quota/2 && !killed {
			killed = true
			processes[1].cmd.Process.Kill()
		}
		return true
	}
	oneJob := strings.NewReplacer(`["q1","q2"]`, `["q1"]`, `"repetitions":3`, `"repetitions":1`).Replace(testRun)
	for _, round := range []struct{ name, body string }{{"six", testRun}, {"one", oneJob}} {
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for n := 0; create(c, fmt.Sprintf("%s-%d-%d", round.name, c, n), round.body); n++ {
					spend(c)
				}
			})
		}
		wg.Wait()
	}

	if !killed {
		t.Error("no process was killed")
	}
	for reset, w := range windows {
		end, err := strconv.Atoi(reset)
		must(t, err)
		used := number(t, pool, `SELECT used FROM api_rate_limit_buckets
			WHERE rate_limit = $1 AND window_start = to_timestamp($2::bigint - 60)`, limit, end)
		if used > limit || w.refused > 0 && used != limit || w.admitted > used || w.admitted < used-cut {
			t.Errorf("window until %s: %+v; %d counted of a limit of %d; %d requests were cut off", reset, w, used, limit, cut)
		}
	}
	full := number(t, pool, `SELECT max(jobs_ordered) FROM account_months`) // two months, if one ends during the test
	counted := number(t, pool, `SELECT sum(jobs_ordered) FROM account_months`)
	written := number(t, pool, `SELECT count(*) FROM measurement_jobs`)
	if full != quota || accepted != counted || written != counted {
		t.Errorf("%d jobs accepted, %d counted, %d in a month, %d written; want %d a month", accepted, counted, full, written, quota)
	}
}
