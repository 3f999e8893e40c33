//go:build citus

package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
	"aiv/store/storetest"
)

// TestFaultCitus kills the workers of a cluster in turn, and the coordinator, while clients create runs of accounts on
// all of them through two processes, and their jobs are worked. While a worker is away, accounts on the other are served,
// and those on it get 503.
func TestFaultCitus(t *testing.T) {
	workerKills, coordinatorKills := byForm(2, 10), byForm(1, 5)
	c := newCitusCluster(t)
	l := newLoad(t, c.url, 2)
	keys := c.accounts(t, 3)
	for _, k := range keys {
		l.others = append(l.others, k...)
	}
	l.most = 1
	f := newFleet(t, c.url, 2) // which works the runs of the clients
	for _, p := range append([]*process{f.dispatch[0].Load(), f.dispatch[1].Load()}, *l.serves.Load()...) {
		logFailures(t, p)
	}
	l.begin(14)
	f.begin(4)
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
		l.got(http.StatusServiceUnavailable, 1)
		c.resume(t, 0)
		l.eventually(t, n, http.StatusOK, l.others...)
	}
	l.end()
	c.endPrepared(t)
	what := fmt.Sprintf("%d kills of workers, %d of the coordinator", workerKills, coordinatorKills)
	l.check(what)
	l.survived(t, behindLock)
	pool := open(t, c.url)
	f.end(pool)
	c.endPrepared(t)
	f.check(what, pool)
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
	var wg sync.WaitGroup
	var mu sync.Mutex
	created := make(map[string]bool) // responses
	for i := range 64 {
		wg.Go(func() {
			a, err := patiently(func() (answer, error) {
				return processes[i%2].do(t.Context(), "POST", "", key.Key, "duplicates", testRun)
			})
			mu.Lock()
			defer mu.Unlock()
			if created[a.body] = true; err != nil || a.status != http.StatusAccepted || len(created) > 1 {
				t.Errorf("got %d %s, %v, want 202 and one run", a.status, a.body, err)
			}
		})
	}
	wg.Wait()
	statuses := make(map[int]int)
	for i := range 8 * limit {
		wg.Go(func() {
			a, err := processes[i%2].do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
			mu.Lock()
			defer mu.Unlock()
			if statuses[a.status]++; err != nil || a.status != http.StatusOK && a.status != http.StatusTooManyRequests {
				t.Errorf("got %d %s, %v", a.status, a.body, err)
			}
		})
	}
	wg.Wait()
	pool := open(t, c.url)
	windows := number(t, pool, `SELECT count(*) FROM api_rate_limit_buckets`)
	used := number(t, pool, `SELECT max(used) FROM api_rate_limit_buckets`)
	if n := statuses[http.StatusOK]; used > limit || n > windows*limit || n == 0 {
		t.Errorf("%d requests were admitted in %d minutes of %d; at most %d were counted", n, windows, limit, used)
	}
	cli[any](t, c.url, "keys", "revoke", key.ID)
	for _, p := range processes {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != http.StatusUnauthorized {
			t.Errorf("a revoked key: got %d %s", a.status, a.body)
		}
	}
}

// A citusSite is services on a cluster whose accounts have webhooks, and a provider with at most 10 jobs in flight.
type citusSite struct {
	*citusCluster
	keys     [1 + citusWorkers][]string // of two accounts on each server; the second has a webhook
	serve    *process
	dispatch *process
	w        *workerClient
	hooks    [1 + citusWorkers]*received
}

func newCitusSite(t *testing.T) *citusSite {
	t.Helper()
	s := &citusSite{citusCluster: newCitusCluster(t)}
	customer(t, s.url, 1_000_000)
	s.keys = s.accounts(t, 2)
	cli[any](t, s.url, "providers", "set", "p", "-in-flight", "10")
	s.serve, s.dispatch = startServe(t, s.url, "-webhook-allow-private"), startDispatch(t, s.url, "-webhook-allow-private")
	logFailures(t, s.dispatch)
	s.w = newWorkerClient(t, s.url, s.dispatch)
	for server := 1; server <= citusWorkers; server++ {
		s.hooks[server] = newReceived(t)
		newWebhook(t, s.serve, s.keys[server][1], s.hooks[server].server.URL)
	}
	return s
}

// TestFaultCitusServerAway: while a server of a cluster is away, jobs of the accounts on the other are handed out and
// settled, also those ordered since, their answers are recounted, and their webhooks are delivered. The limit of a
// provider's jobs in flight includes those of the server that is away. A delivery that ended after the server was lost is
// recorded when it is back.
func TestFaultCitusServerAway(t *testing.T) {
	kills := byForm(2, 10)
	s := newCitusSite(t)
	serve, w := s.serve, s.w
	runs := 0
	var finished [1 + citusWorkers]int // runs of the accounts with webhooks, by server
	complete := func(server int) {
		t.Helper()
		runs++
		finished[server]++
		serve.order(t, s.keys[server][1], fmt.Sprint("run-", runs))
		settleAll(t, w, claimUntil(t, w, 6))
	}
	s.hooks[1].mu.Lock() // its requests get no response
	free := sync.OnceFunc(s.hooks[1].mu.Unlock)
	defer free()
	complete(1)
	storetest.Eventually(t, "a delivery has begun", func() bool { return s.hooks[1].begun.Load() > 0 })
	serve.order(t, s.keys[1][0], "before")
	first := claimUntil(t, w, 2)
	serve.order(t, s.keys[2][0], "before")

	s.kill(t, 1)
	free()
	serve.order(t, s.keys[2][1], "since")
	finished[2]++
	held := claimUntil(t, w, 8)
	claimNone(t, w)
	settleAll(t, w, held)
	settleAll(t, w, claimUntil(t, w, 4))
	claimNone(t, w)
	s.hooks[2].underOneID(t, finished[2])
	m := &measurement{serve: serve, key: s.keys[2][1]}
	serve.send(t, http.StatusCreated, "POST", "/v1/brands", m.key, "brand", `{"kind":"own","name":"Kovalt"}`)
	must(t, m.await("/v1/metrics", 6, true))
	s.resume(t, 1)
	settleAll(t, w, first)
	settleAll(t, w, claimUntil(t, w, 4))

	for n := 1; n < kills; n++ {
		away, other := 1+n%citusWorkers, 1+(n+1)%citusWorkers
		s.kill(t, away)
		for range 3 {
			complete(other)
			s.hooks[other].underOneID(t, finished[other])
		}
		s.resume(t, away)
		complete(away)
		s.hooks[away].underOneID(t, finished[away])
	}
	s.settled(t, runs+3)
	waitUntil(t, s.url, fmt.Sprintf(`SELECT count(*) = %d FROM webhook_deliveries WHERE status = 'delivered'`, runs+1))
	for server := 1; server <= citusWorkers; server++ {
		s.hooks[server].underOneID(t, finished[server])
	}
	if n := number(t, open(t, s.url), `SELECT count(*) FROM events WHERE type = 'run.completed'`); n != runs+3 {
		t.Errorf("%d events of %d runs", n, runs+3)
	}
}

// TestFaultCitusServerBackDuringRecount: answers of accounts on a server that is back are recounted, also if the recount
// that has found it unreachable has not ended.
func TestFaultCitusServerBackDuringRecount(t *testing.T) {
	s := newCitusSite(t)
	s.serve.order(t, s.keys[1][0], "1")
	s.serve.order(t, s.keys[2][0], "2")
	s.serve.order(t, s.keys[2][0], "3") // so that the recount of this account has two steps
	for range 3 {
		settleAll(t, s.w, claimUntil(t, s.w, 6))
	}
	must(t, s.dispatch.stop())
	for _, of := range s.keys[1:] {
		s.serve.send(t, http.StatusCreated, "POST", "/v1/brands", of[0], "brand", `{"kind":"own","name":"Kovalt"}`)
	}

	s.kill(t, 1)
	pool := open(t, s.url)
	outage := store.NewOutage(pool, slog.New(slog.DiscardHandler))
	resume := sync.OnceFunc(func() {
		s.resume(t, 1)
		must(t, outage.Update(t.Context())) // as aiv dispatch does once a second
		time.Sleep(time.Second)             // a recount looks for changed accounts once a second
	})
	isStep := func(sql string) bool { return strings.Contains(sql, "LIMIT 32 FOR UPDATE SKIP LOCKED") }
	traced := storetest.WithTracer(t, pool, storetest.OnStatement{Matches: isStep, Do: func(*pgx.Conn) { resume() }})
	if n, err := counting.New(traced, outage).Recount(t.Context()); n != 18 || err != nil {
		t.Errorf("%d answers were recounted, want 18 (%v)", n, err)
	}
}

// TestFaultCitusInDoubt kills the coordinator after it has committed a claim and before the server of the account has,
// and then that server. Until both are back, the provider has no more jobs in flight than its limit.
func TestFaultCitusInDoubt(t *testing.T) {
	s := newCitusSite(t)
	serve, w := s.serve, s.w
	serve.order(t, s.keys[2][0], "seen") // the dispatcher notes that it has seen the worker
	settleAll(t, w, claimUntil(t, w, 6))
	serve.order(t, s.keys[1][0], "in-doubt")
	serve.order(t, s.keys[2][0], "later-1")
	waitUntil(t, s.url, `SELECT count(*) = 0 FROM job_arrivals`)

	// Commits on the coordinator wait for a standby that does not exist, after the other servers have prepared theirs.
	pool := open(t, s.url)
	exec := func(sql ...string) { storetest.Exec(t, pool, sql...) }
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '-1'`, `ALTER SYSTEM SET synchronous_standby_names = 'none'`, `SELECT pg_reload_conf()`)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for { // until it waits, and is killed
			if _, err := pool.Exec(t.Context(), `UPDATE schema_migrations SET checksum = checksum`); err != nil {
				return
			}
		}
	}()
	const waiting = `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	waitUntil(t, s.url, waiting)
	claimed := make(chan error, 1)
	go func() { _, err := w.claim(1, 0); claimed <- err }()
	waitUntil(t, s.url, waiting+` AND query = 'COMMIT'`) // of the claim; background tasks may wait as well
	s.kill(t, 0)
	if err := <-claimed; err == nil {
		t.Fatal("the claim was committed")
	}
	<-stopped
	s.kill(t, 1)
	s.resume(t, 0)
	pool.Reset()
	exec(`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	serve.order(t, s.keys[2][0], "later-2")
	held := claimUntil(t, w, 9)
	claimNone(t, w)
	settleAll(t, w, held)

	s.resume(t, 1)
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '1s'`, `SELECT pg_reload_conf()`)
	s.endPrepared(t)
	for number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`) > 0 {
		endLeases(t, pool)
		if got := claimSome(t, w, 10); len(got) > 0 {
			settleAll(t, w, got)
		}
	}
	s.settled(t, 4)
}
