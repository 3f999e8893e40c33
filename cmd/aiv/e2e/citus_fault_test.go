//go:build citus

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

var clusterScript = flag.String("cluster", "", "`SCRIPT` that starts, kills, resumes and stops the servers of a Citus cluster")

// A citusCluster is a coordinator, server 0, and the workers 1 and 2.
type citusCluster struct {
	dir, url string
	port     int // of the coordinator; the workers have the next
}

const citusWorkers = 2

// newCitusCluster starts a cluster with a distributed database. The coordinator looks every second for transactions that a server's
// failure left prepared, instead of every minute.
func newCitusCluster(t *testing.T) *citusCluster {
	t.Helper()
	if *clusterScript == "" {
		t.Fatal("-cluster is missing: the script that starts a Citus cluster")
	}
	parent, err := os.MkdirTemp("", "aiv-citus-")
	if err == nil {
		err = os.Chmod(parent, 0o755) // PostgreSQL has an account of its own
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &citusCluster{dir: filepath.Join(parent, "cluster"), port: freePorts(t, 1+citusWorkers)}
	t.Cleanup(func() {
		c.script(t, "stop", c.dir)
		os.RemoveAll(parent)
	})
	c.url = strings.TrimSpace(c.script(t, "start", c.dir, fmt.Sprint(c.port))) + "?sslmode=disable"
	pool := open(t, c.url)
	for _, sql := range []string{"ALTER SYSTEM SET citus.recover_2pc_interval = '1s'", "SELECT pg_reload_conf()"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cli[any](t, c.url, "migrate", "-distribute")
	return c
}

func (c *citusCluster) script(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(*clusterScript, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &errs)
	}
	return out.String()
}

func (c *citusCluster) kill(t *testing.T, server int) { c.script(t, "kill", c.dir, fmt.Sprint(server)) }
func (c *citusCluster) resume(t *testing.T, server int) {
	c.script(t, "resume", c.dir, fmt.Sprint(server))
}

// freePorts returns the first of n consecutive ports that nothing listens on.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 21000; first < 30000; first += n {
		free := true
		for port := first; port < first+n; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no ports are free")
	return 0
}

// accounts creates accounts until each worker has so many, and returns the keys of those of each worker.
func (c *citusCluster) accounts(t *testing.T, each int) (keys [1 + citusWorkers][]string) {
	t.Helper()
	pool := open(t, c.url)
	for left := citusWorkers * each; left > 0; {
		account := cli[struct{ ID string }](t, c.url, "accounts", "create", "-name", "test", "-plan", "test").ID
		id, err := store.ParseID("acct", account)
		if err != nil {
			t.Fatal(err)
		}
		server := number(t, pool, `SELECT nodeport - $2 FROM pg_dist_shard_placement
			WHERE shardid = get_shard_id_for_distribution_column('measurement_runs', $1::uuid)`, id, c.port)
		if len(keys[server]) < each {
			keys[server] = append(keys[server], newKey(t, c.url, account, 1_000_000).Key)
			left--
		}
	}
	return keys
}

// TestFaultCitus kills the workers of a cluster in turn, and the coordinator, while clients create runs of accounts on all of them
// through two processes. While a worker is away, accounts on the other are served, and those on it get 503.
func TestFaultCitus(t *testing.T) {
	workerKills, coordinatorKills := 2, 1
	if storetest.Long() {
		workerKills, coordinatorKills = 10, 5
	}
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
		<-time.After(300 * time.Millisecond)
		c.kill(t, away)
		for round := range 5 {
			l.eventually(t, round, http.StatusServiceUnavailable, keys[away]...)
			l.eventually(t, round, http.StatusOK, keys[other]...)
		}
		c.resume(t, away)
		l.eventually(t, n, http.StatusOK, l.others...)
	}
	for n := range coordinatorKills {
		<-time.After(300 * time.Millisecond)
		c.kill(t, 0)
		l.refused(bounded)
		c.resume(t, 0)
		l.eventually(t, n, http.StatusOK, l.others...)
	}
	l.end()
	c.endPrepared(t)
	l.check(fmt.Sprintf("%d kills of workers, %d of the coordinator", workerKills, coordinatorKills))
	l.survived(t, behindLock)
}

// logFailures logs at the end of the test the internal errors of a process, and what aiv dispatch may have reported as such.
func logFailures(t *testing.T, p *process) {
	t.Cleanup(func() {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, `"status":500`) || strings.Contains(line, `"msg":"a request failed"`) && strings.Contains(line, "XX000") {
				t.Log(line)
			}
		}
	})
}

// eventually waits until reads and writes of each key have this status; success of a write is 202. Each response, also before,
// must be success or 503.
func (l *load) eventually(t *testing.T, round, status int, keys ...string) {
	t.Helper()
	for i, key := range keys {
		name := fmt.Sprint("probe-", l.account(key))
		for deadline := time.Now().Add(behindLock); ; <-time.After(10 * time.Millisecond) {
			p := l.process(i + round)
			read, err := p.do(t.Context(), "GET", "?path=/v1/runs&limit=1", key, "", "")
			var written answer
			if err == nil {
				written, err = p.do(t.Context(), "POST", "", key, name, testRun)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range []answer{read, written} {
				if a.status != 200 && a.status != 202 && (a.status != 503 || a.header.Get("Retry-After") == "") {
					t.Errorf("got %d %v %s", a.status, a.header, a.body)
				}
			}
			if read.status == status && (written.status == status || status == http.StatusOK && written.status == http.StatusAccepted) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("account %d: got %d %s and %d %s, want %d\n%s", i, read.status, read.body, written.status, written.body, status, p.log.end())
			}
		}
		l.mu.Lock()
		l.keys[name] = &asked{key: key, body: testRun, jobs: 6}
		l.mu.Unlock()
	}
}

// account returns the position of a key among all.
func (l *load) account(key string) int {
	for i, k := range l.others {
		if k == key {
			return i
		}
	}
	return -1
}

// endPrepared ends the transactions that a server's failure left prepared.
func (c *citusCluster) endPrepared(t *testing.T) {
	t.Helper()
	for server := range 1 + citusWorkers {
		waitUntil(t, c.server(server), `SELECT count(*) = 0 FROM pg_prepared_xacts`)
	}
}

// server returns the URL of a server.
func (c *citusCluster) server(n int) string {
	return strings.Replace(c.url, fmt.Sprint(":", c.port), fmt.Sprint(":", c.port+n), 1)
}

// TestFaultCitusDispatch kills the workers of a cluster in turn, and the coordinator, while jobs of accounts on all of them are
// worked.
func TestFaultCitusDispatch(t *testing.T) {
	kills, runs := 3, 24
	if storetest.Long() {
		kills, runs = 15, 120
	}
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	var all []string
	for _, keys := range c.accounts(t, 2) {
		all = append(all, keys...)
	}
	f := newFleetOf(t, c.url, all, runs, 2)
	for i := range f.dispatch {
		logFailures(t, f.dispatch[i].Load())
	}
	f.begin(4)
	for n := range kills {
		f.until("the next kill", func(settled, _ int) bool { return settled > f.total*n/(kills+2) })
		server := n % (1 + citusWorkers)
		c.kill(t, server)
		before, failed := f.counts()
		empty := f.empty.Load()
		f.until("requests fail, or jobs of the others are worked", func(settled, n int) bool {
			return n > failed || server > 0 && (settled > before || f.empty.Load() > empty)
		})
		c.resume(t, server)
	}
	pool := open(t, c.url)
	f.end(pool)
	c.endPrepared(t)
	f.check(fmt.Sprintf("%d kills of servers", kills), pool)
}

// claimSome claims up to limit jobs under long leases. It repeats a claim that gets 503.
func claimSome(t *testing.T, w *workerClient, limit int) (claimed []job) {
	t.Helper()
	eventually(t, "a claim", func() error {
		return w.call(t.Context(), "/claim", map[string]any{"limit": limit, "lease_seconds": 900, "providers": nil, "wait_seconds": 0}, &claimed)
	})
	return claimed
}

// settleAll settles jobs as completed. It repeats a request that gets 503.
func settleAll(t *testing.T, w *workerClient, jobs []job) {
	t.Helper()
	eventually(t, "a settlement", func() error {
		states, err := w.settle(t.Context(), jobs)
		for _, s := range states {
			if s != "settled" {
				t.Errorf("a job is %s", s)
			}
		}
		return err
	})
}

// eventually repeats what fails with 503.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(behindLock); ; <-time.After(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if r, ok := errors.AsType[*refusal](err); !ok || r.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// orderSome creates a run of 6 jobs. It repeats a request that gets 503.
func orderSome(t *testing.T, serve *process, key, name string) {
	t.Helper()
	eventually(t, "a run", func() error {
		a, err := serve.do(t.Context(), "POST", "", key, name, testRun)
		if err == nil && a.status != http.StatusAccepted {
			err = &refusal{"runs", a.status, a.header.Get("Retry-After"), a.body}
		}
		return err
	})
}

// claimUntil claims until it has so many jobs.
func claimUntil(t *testing.T, w *workerClient, n int) (claimed []job) {
	t.Helper()
	for deadline := time.Now().Add(behindLock); len(claimed) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("claimed %d jobs, want %d", len(claimed), n)
		}
		claimed = append(claimed, claimSome(t, w, n-len(claimed))...)
	}
	return claimed
}

// TestFaultCitusServerAway: while a server of a cluster is away, jobs of the accounts on the other are handed out and settled, also
// those ordered since. The limit of a provider's jobs in flight includes those of the server that is away.
func TestFaultCitusServerAway(t *testing.T) {
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 2)
	cli[any](t, c.url, "providers", "set", "p", "-in-flight", "10")
	serve, dispatch := startServe(t, c.url), startDispatch(t, c.url)
	logFailures(t, dispatch)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	orderSome(t, serve, keys[1][0], "before")
	first := claimUntil(t, w, 2)
	orderSome(t, serve, keys[2][0], "before")

	c.kill(t, 1)
	orderSome(t, serve, keys[2][1], "since")
	held := claimUntil(t, w, 8)
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out beyond the limit of 10 in flight", len(more))
	}
	settleAll(t, w, held)
	settleAll(t, w, claimUntil(t, w, 4))
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out after all 12 of the accounts that can be served", len(more))
	}

	c.resume(t, 1)
	settleAll(t, w, first)
	settleAll(t, w, claimUntil(t, w, 4))
	c.endPrepared(t)
	c.settled(t, 3)
}

// TestFaultCitusWebhooks: while a server of a cluster is away, webhooks of accounts on the other are delivered. A delivery that ended
// after the server was lost is recorded when it is back.
func TestFaultCitusWebhooks(t *testing.T) {
	kills := 2
	if storetest.Long() {
		kills = 10
	}
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 1)
	serve, dispatch := startServe(t, c.url, "-webhook-allow-private"), startDispatch(t, c.url, "-webhook-allow-private")
	logFailures(t, dispatch)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	var hooks [1 + citusWorkers]*received
	for server := 1; server <= citusWorkers; server++ {
		hooks[server] = newReceived(t)
		newWebhook(t, serve, keys[server][0], hooks[server].server.URL)
	}
	hooks[1].mu.Lock() // its requests get no response
	free := sync.OnceFunc(hooks[1].mu.Unlock)
	defer free()
	runs := 0
	var finished [1 + citusWorkers]int // by server
	complete := func(server int) {
		t.Helper()
		runs++
		finished[server]++
		orderSome(t, serve, keys[server][0], fmt.Sprint("run-", runs))
		settleAll(t, w, claimUntil(t, w, 6))
	}
	delivered := func(server int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); hooks[server].runs() < finished[server]; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("events of %d runs of server %d were delivered, want %d\n%s", hooks[server].runs(), server, finished[server], dispatch.log.end())
			}
		}
	}
	complete(1)
	for deadline := time.Now().Add(time.Minute); hooks[1].begun.Load() == 0; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no delivery has begun")
		}
	}
	complete(2)
	delivered(2)
	for n := range kills {
		away, other := 1+n%citusWorkers, 1+(n+1)%citusWorkers
		c.kill(t, away)
		free()
		for range 3 {
			complete(other)
			delivered(other)
		}
		c.resume(t, away)
		complete(away)
		delivered(away)
	}
	c.endPrepared(t)
	waitUntil(t, c.url, fmt.Sprintf(`SELECT count(*) = %d FROM webhook_deliveries WHERE status = 'delivered'`, runs))
	if n := number(t, open(t, c.url), `SELECT count(*) FROM events`); n != runs {
		t.Errorf("%d events of %d runs", n, runs)
	}
	again := 0
	for _, h := range hooks[1:] {
		h.mu.Lock()
		for run, ids := range h.counts {
			if len(ids) != 1 {
				t.Errorf("the event of %s was delivered under %d ids", run, len(ids))
			}
			for _, times := range ids {
				again += times - 1
			}
		}
		h.mu.Unlock()
	}
	t.Logf("%d kills of workers: events of %d runs, of which %d were delivered again", kills, runs, again)
	c.settled(t, runs)
}

// settled checks that so many runs are completed and no job is counted as held.
func (c *citusCluster) settled(t *testing.T, runs int) {
	t.Helper()
	pool := open(t, c.url)
	if n := number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status = 'completed'`); n != runs {
		t.Errorf("%d runs are completed, want %d", n, runs)
	}
	if n := number(t, pool, `SELECT count(*) FROM job_holds`); n != 0 {
		t.Errorf("%d runs are counted as having jobs in flight", n)
	}
}

// TestFaultCitusInDoubt kills the coordinator after it has committed a claim and before the server of the account has, and then that
// server. Until both are back, the provider has no more jobs in flight than its limit.
func TestFaultCitusInDoubt(t *testing.T) {
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 1)
	cli[any](t, c.url, "providers", "set", "p", "-in-flight", "10")
	serve, dispatch := startServe(t, c.url), startDispatch(t, c.url)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	orderSome(t, serve, keys[2][0], "seen") // the dispatcher notes that it has seen the worker
	settleAll(t, w, claimUntil(t, w, 6))
	orderSome(t, serve, keys[1][0], "in-doubt")
	orderSome(t, serve, keys[2][0], "later-1")
	waitUntil(t, c.url, `SELECT count(*) = 0 FROM job_arrivals`)

	// Commits on the coordinator wait for a standby that does not exist, after the other servers have prepared theirs.
	pool := open(t, c.url)
	exec := func(sql ...string) {
		t.Helper()
		for _, sql := range sql {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
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
	const waiting = `FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	waitUntil(t, c.url, `SELECT count(*) = 1 `+waiting)
	claimed := make(chan error, 1)
	go func() { _, err := w.claim(1, 0); claimed <- err }()
	waitUntil(t, c.url, `SELECT count(*) = 2 `+waiting)
	c.kill(t, 0)
	if err := <-claimed; err == nil {
		t.Fatal("the claim was committed")
	}
	<-stopped
	c.kill(t, 1)
	c.resume(t, 0)
	exec(`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	orderSome(t, serve, keys[2][0], "later-2")
	held := claimUntil(t, w, 9)
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out beyond the limit of 10 in flight", len(more))
	}
	settleAll(t, w, held)

	c.resume(t, 1)
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '1s'`, `SELECT pg_reload_conf()`)
	c.endPrepared(t)
	for n := number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`); n > 0; {
		endLeases(t, pool)
		if got := claimSome(t, w, 10); len(got) > 0 {
			settleAll(t, w, got)
		}
		n = number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`)
	}
	c.settled(t, 4)
}

// TestCitusTwoCoordinators: aiv serve at the URL of another server of the cluster shares limits and idempotency keys with aiv serve at the
// coordinator's.
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
			eventually(t, "a run", func() error {
				a, err := processes[i%2].do(t.Context(), "POST", "", key.Key, "duplicates", testRun)
				if err == nil && a.status == http.StatusServiceUnavailable {
					err = &refusal{"runs", a.status, a.header.Get("Retry-After"), a.body}
				}
				answers[i] = a
				return err
			})
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

// runs returns the number of runs of which an event was received.
func (r *received) runs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.counts)
}
