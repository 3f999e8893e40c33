//go:build citus

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	for port := c.port; port <= c.port+citusWorkers; port++ {
		waitUntil(t, strings.Replace(c.url, fmt.Sprint(":", c.port), fmt.Sprint(":", port), 1), `SELECT count(*) = 0 FROM pg_prepared_xacts`)
	}
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
		_, failed := f.counts()
		c.kill(t, server)
		f.until("requests fail", func(_, n int) bool { return n > failed })
		c.resume(t, server)
	}
	pool := open(t, c.url)
	f.end(pool)
	c.endPrepared(t)
	f.check(fmt.Sprintf("%d kills of servers", kills), pool)
}
