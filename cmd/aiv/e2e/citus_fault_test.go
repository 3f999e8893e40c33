//go:build citus

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/store/storetest"
)

// TestFaultCitus kills the workers of a cluster in turn, and the coordinator, while clients create runs of accounts on
// all of them through two processes. While a worker is away, accounts on the other are served, and those on it get 503.
func TestFaultCitus(t *testing.T) {
	workerKills, coordinatorKills := byForm(2, 10), byForm(1, 5)
	c := newCitusCluster(t)
	l := newLoad(t, c.url, 2)
	keys := c.accounts(t, 3)
	for _, k := range keys {
		l.others = append(l.others, k...)
	}
	for _, p := range *l.serves.Load() {
		logFailures(t, p)
	}
	l.begin(14)
	l.eventually(t, 0, http.StatusOK, l.others...)
	for n := range workerKills {
		away, other := 1+n%citusWorkers, 1+(n+1)%citusWorkers
		l.acknowledged(5)
		c.kill(t, away)
		for round := range 5 {
			l.eventually(t, round, http.StatusServiceUnavailable, keys[away]...)
			l.eventually(t, round, http.StatusOK, keys[other]...)
		}
		c.resume(t, away)
		l.eventually(t, n, http.StatusOK, l.others...)
	}
	for n := range coordinatorKills {
		l.acknowledged(5)
		c.kill(t, 0)
		l.refused()
		c.resume(t, 0)
		l.eventually(t, n, http.StatusOK, l.others...)
	}
	l.end()
	c.endPrepared(t)
	l.check(fmt.Sprintf("%d kills of workers, %d of the coordinator", workerKills, coordinatorKills))
	l.survived(t, behindLock)
}

// logFailures logs at the end of the test the internal errors of a process, and what aiv dispatch may have reported as
// such.
func logFailures(t *testing.T, p *process) {
	t.Cleanup(func() {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, `"status":500`) || strings.Contains(line, `"route":"POST /worker/v1/`) && strings.Contains(line, "XX000") {
				t.Log(line)
			}
		}
	})
}

// eventually waits until reads and writes of each key have this status; success of a write is 202. Each response, also
// before, must be success or 503.
func (l *load) eventually(t *testing.T, round, status int, keys ...string) {
	t.Helper()
	for i, key := range keys {
		name := fmt.Sprint("probe-", slices.Index(l.others, key))
		storetest.Eventually(t, fmt.Sprintf("account %d gets %d", i, status), func() bool {
			p := l.process(i + round)
			read, err := p.do(t.Context(), "GET", "?path=/v1/runs&limit=1", key, "", "")
			must(t, err)
			written, err := p.do(t.Context(), "POST", "", key, name, testRun)
			must(t, err)
			for _, a := range []answer{read, written} {
				if a.status != 200 && a.status != 202 && (a.status != 503 || a.header.Get("Retry-After") == "") {
					t.Errorf("got %d %v %s", a.status, a.header, a.body)
				}
			}
			return read.status == status && (written.status == status || status == http.StatusOK && written.status == http.StatusAccepted)
		})
		l.mu.Lock()
		l.keys[name] = &asked{key: key, body: testRun, jobs: 6}
		l.mu.Unlock()
	}
}

// TestCitusTwoCoordinators: aiv serve at the URL of another server of the cluster shares limits and idempotency keys
// with aiv serve at the coordinator's.
func TestCitusTwoCoordinators(t *testing.T) {
	c := newCitusCluster(t)
	const limit = 100
	_, key := customer(t, c.url, limit)
	processes := []*process{startServe(t, c.url), startServe(t, c.server(1))}
	const clients = 64
	answers := make([]answer, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			a, err := patiently(func() (answer, error) {
				return processes[i%2].do(t.Context(), "POST", "", key.Key, "duplicates", testRun)
			})
			if answers[i] = a; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a.status != http.StatusAccepted || a.body != answers[0].body {
			t.Errorf("got %d %s, want 202 %s", a.status, a.body, answers[0].body)
		}
	}
	pool := open(t, c.url)
	if n := number(t, pool, `SELECT count(*) FROM measurement_runs`); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	var admitted [2]atomic.Int64
	for i := range 8 * limit {
		wg.Go(func() {
			a, err := processes[i%2].do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
			switch {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusOK:
				admitted[i%2].Add(1)
			case a.status != http.StatusTooManyRequests:
				t.Errorf("got %d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	windows := number(t, pool, `SELECT count(*) FROM api_rate_limit_buckets`)
	used := number(t, pool, `SELECT max(used) FROM api_rate_limit_buckets`)
	if n := int(admitted[0].Load() + admitted[1].Load()); used > limit || n > windows*limit || n == 0 {
		t.Errorf("%d requests were admitted in %d minutes of %d; at most %d were counted", n, windows, limit, used)
	}
	t.Logf("admitted at the coordinator and at the other server: %d, %d", admitted[0].Load(), admitted[1].Load())

	cli[any](t, c.url, "keys", "revoke", key.ID)
	for _, p := range processes {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != http.StatusUnauthorized {
			t.Errorf("a revoked key: got %d %s", a.status, a.body)
		}
	}
}
