//go:build citus

package e2e

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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

// newCitusCluster starts a cluster with a distributed database. The coordinator looks every second for transactions
// that a server's failure left prepared, instead of every minute.
func newCitusCluster(t *testing.T) *citusCluster {
	t.Helper()
	if *clusterScript == "" {
		t.Fatal("-cluster is missing: the script that starts a Citus cluster")
	}
	parent, err := os.MkdirTemp("", "aiv-citus-")
	must(t, err)
	must(t, os.Chmod(parent, 0o755)) // PostgreSQL has an account of its own
	c := &citusCluster{dir: filepath.Join(parent, "cluster"), port: freePorts(t, 1+citusWorkers)}
	t.Cleanup(func() {
		c.script(t, "stop", c.dir)
		os.RemoveAll(parent)
	})
	c.url = strings.TrimSpace(c.script(t, "start", c.dir, fmt.Sprint(c.port))) + "?sslmode=disable"
	pool := open(t, c.url)
	storetest.Exec(t, pool, "ALTER SYSTEM SET citus.recover_2pc_interval = '1s'", "SELECT pg_reload_conf()")
	cli[any](t, c.url, "migrate", "-distribute")
	return c
}

func (c *citusCluster) script(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(*clusterScript, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

func (c *citusCluster) kill(t *testing.T, n int)   { c.script(t, "kill", c.dir, strconv.Itoa(n)) }
func (c *citusCluster) resume(t *testing.T, n int) { c.script(t, "resume", c.dir, strconv.Itoa(n)) }

// freePorts returns the first of n consecutive ports that nothing listens on.
func freePorts(t *testing.T, n int) (first int) {
	t.Helper()
	for free, port := 0, 21000; port < 30000; port++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if free++; err != nil {
			free = 0
			continue
		}
		if l.Close(); free == n {
			return port - n + 1
		}
	}
	t.Fatal("no ports are free")
	return 0
}

// accounts creates accounts until each worker has so many, and returns the keys of each worker's accounts.
func (c *citusCluster) accounts(t *testing.T, each int) (keys [1 + citusWorkers][]string) {
	t.Helper()
	pool := open(t, c.url)
	for left := citusWorkers * each; left > 0; {
		account := cli[struct{ ID string }](t, c.url, "accounts", "create", "-name", "test", "-plan", "test").ID
		id, err := store.ParseID("acct", account)
		must(t, err)
		server := number(t, pool, `SELECT nodeport - $2 FROM pg_dist_shard_placement
			WHERE shardid = get_shard_id_for_distribution_column('measurement_runs', $1::uuid)`, id, c.port)
		if len(keys[server]) < each {
			keys[server] = append(keys[server], newKey(t, c.url, account, 1_000_000).Key)
			left--
		}
	}
	return keys
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

// settled checks that so many runs are completed and no job is counted as held.
func (c *citusCluster) settled(t *testing.T, runs int) {
	t.Helper()
	c.endPrepared(t)
	pool := open(t, c.url)
	storetest.Equal(t, runs, number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status = 'completed'`), "completed runs")
	if n := number(t, pool, `SELECT count(*) FROM job_holds`); n != 0 {
		t.Errorf("%d runs are counted as having jobs in flight", n)
	}
}
