//go:build citus

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

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
	l.others = slices.Concat(keys[:]...)
	l.most = 1
	f := newFleet(t, c.url, 2) // which works the runs of the clients
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

// eventually waits until reads and writes of each key have this status; success of a write is 202. Each response, also
// before, must be success or 503.
func (l *load) eventually(t *testing.T, try, status int, keys ...string) {
	t.Helper()
	for _, key := range keys {
		name := fmt.Sprint("probe-", slices.Index(l.others, key))
		storetest.Eventually(t, fmt.Sprintf("%s gets %d", name, status), func() bool {
			read, err := l.ask(try, "GET", "?path=/v1/runs&limit=1", key, "", "")
			must(t, err)
			written, err := l.ask(try, "POST", "", key, name, testRun)
			must(t, err)
			return read.status == status && (written.status == status || status == http.StatusOK && written.status == http.StatusAccepted)
		})
		l.mu.Lock()
		l.keys[name] = &asked{key: key, body: testRun, jobs: 6}
		l.mu.Unlock()
		try++
	}
}

// TestCitusTwoCoordinators: aiv serve at the URL of another server of the cluster shares limits and idempotency keys
// with aiv serve at the coordinator's, and sees a revoked key.
func TestCitusTwoCoordinators(t *testing.T) {
	c := newCitusCluster(t)
	const limit = 100
	account, _ := customer(t, c.url)
	key := newKey(t, c.url, account, limit)
	processes := []*process{startServe(t, c.url), startServe(t, c.server(1))}
	var mu sync.Mutex
	answers := make(map[string]int)
	note := func(a answer, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers[fmt.Sprint(a.status, err, after(a.body, `"id":"`))]++
	}
	storetest.AtOnce(64, func(i int) {
		note(processes[i%2].patiently(t.Context(), "POST", "", key.Key, "duplicates", testRun))
	})
	if len(answers) != 1 || !strings.Contains(fmt.Sprint(answers), "202 <nil>run_") {
		t.Errorf("duplicates got %v, want one run", answers)
	}
	clear(answers)
	storetest.AtOnce(8*limit, func(i int) {
		a, err := processes[i%2].do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
		note(answer{status: a.status}, err)
	})
	pool := open(t, c.url)
	windows := number(t, pool, `SELECT count(*) FROM api_rate_limit_buckets`)
	used := number(t, pool, `SELECT max(used) FROM api_rate_limit_buckets`)
	admitted, refused := answers["200 <nil>"], answers["429 <nil>"]
	if used > limit || admitted > windows*limit || admitted == 0 || admitted+refused != 8*limit {
		t.Errorf("%v in %d minutes of %d, of which at most %d were counted", answers, windows, limit, used)
	}
	cli[any](t, c.url, "keys", "revoke", key.ID)
	for _, p := range processes {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != http.StatusUnauthorized {
			t.Errorf("a revoked key: got %d %s", a.status, a.body)
		}
	}
}

// claimsNone fails the test if a claim gets jobs.
func (w *workerClient) claimsNone(t *testing.T) {
	t.Helper()
	storetest.Eventually(t, "a claim", func() bool {
		jobs, err := w.claim("null", 10, 0, 600)
		if len(jobs) > 0 {
			t.Errorf("%d jobs were handed out beyond the limit of 10 in flight, or of an account that cannot be served", len(jobs))
		}
		return err == nil
	})
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
	customer(t, s.url)
	s.keys = s.accounts(t, 2)
	cli[any](t, s.url, "providers", "set", "p", "-in-flight", "10")
	s.serve, s.dispatch = startServe(t, s.url, "-webhook-allow-private"), startDispatch(t, s.url, "-webhook-allow-private")
	s.w = newWorkerClient(t, s.url, s.dispatch)
	for server := 1; server <= citusWorkers; server++ {
		s.hooks[server] = newReceived(t)
		newWebhook(t, s.serve, s.keys[server][1], s.hooks[server].server.URL)
	}
	return s
}

// TestFaultCitusServerAway: while a server of a cluster is away, jobs of the accounts on the other are handed out and
// settled, also those ordered since, their answers are recounted, and their webhooks are delivered. The limit of a
// provider's jobs in flight includes jobs of the server that is away. When it is back, a delivery that ended after it was
// lost is recorded, and the answers of its accounts are recounted.
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
		w.settles(t, w.claims(t, 6))
	}
	counts := [1 + citusWorkers]*measurement{1: {serve: serve, key: s.keys[1][1]}, 2: {serve: serve, key: s.keys[2][1]}}
	newBrand := func(server int) {
		t.Helper()
		serve.send(t, http.StatusCreated, "POST", "/v1/brands", counts[server].key, "brand", `{"kind":"own","name":"Kovalt"}`)
	}
	s.hooks[1].mu.Lock() // its requests get no response
	free := sync.OnceFunc(s.hooks[1].mu.Unlock)
	defer free()
	complete(1)
	storetest.Eventually(t, "a delivery has begun", func() bool { return s.hooks[1].begun.Load() > 0 })
	serve.order(t, s.keys[1][0], "before")
	first := w.claims(t, 2)
	serve.order(t, s.keys[2][0], "before")

	newBrand(1)
	s.kill(t, 1)
	free()
	serve.order(t, s.keys[2][1], "since")
	finished[2]++
	held := w.claims(t, 8)
	w.claimsNone(t)
	w.settles(t, held)
	w.settles(t, w.claims(t, 4))
	w.claimsNone(t)
	s.hooks[2].awaits(t, finished[2])
	newBrand(2)
	must(t, counts[2].await("/v1/metrics", 6, true))
	s.resume(t, 1)
	must(t, counts[1].await("/v1/metrics", 6, true))
	w.settles(t, first)
	w.settles(t, w.claims(t, 4))

	for n := 1; n < kills; n++ {
		away, other := 1+n%citusWorkers, 1+(n+1)%citusWorkers
		s.kill(t, away)
		for range 3 {
			complete(other)
			s.hooks[other].awaits(t, finished[other])
		}
		s.resume(t, away)
		complete(away)
		s.hooks[away].awaits(t, finished[away])
	}
	s.settled(t, runs+3)
	waitUntil(t, s.url, fmt.Sprintf(`SELECT count(*) = %d FROM webhook_deliveries WHERE status = 'delivered'`, runs+1))
	for server := 1; server <= citusWorkers; server++ {
		s.hooks[server].awaits(t, finished[server])
	}
	if n := number(t, open(t, s.url), `SELECT count(*) FROM events WHERE type = 'run.completed'`); n != runs+3 {
		t.Errorf("%d events of %d runs", n, runs+3)
	}
}

// TestFaultCitusInDoubt kills the coordinator after it has committed a claim and before the server of the account has,
// and then that server. Until both are back, the provider has no more jobs in flight than its limit.
func TestFaultCitusInDoubt(t *testing.T) {
	s := newCitusSite(t)
	serve, w := s.serve, s.w
	serve.order(t, s.keys[2][0], "seen") // the dispatcher notes that it has seen the worker
	w.settles(t, w.claims(t, 6))
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
	go func() { _, err := w.claim("null", 1, 0, 600); claimed <- err }()
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
	held := w.claims(t, 9)
	w.claimsNone(t)
	w.settles(t, held)

	s.resume(t, 1)
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '1s'`, `SELECT pg_reload_conf()`)
	s.endPrepared(t)
	for number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`) > 0 {
		endLeases(t, pool)
		if got := w.claimSome(t, 10); len(got) > 0 {
			w.settles(t, got)
		}
	}
	s.settled(t, 4)
}
