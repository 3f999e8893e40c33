package e2e

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// Bounds that the long forms check. The short forms run beside other tests, on machines of any speed: they check what
// happens, and in which order.
const (
	// bounded is the bound of a response while the process cannot connect to the database.
	bounded = 5 * time.Second
	// unanswered is the bound while the database accepts connections but does not respond.
	unanswered = 35 * time.Second
	// behindLock is the bound while another session holds a lock: a request may wait for the batch in flight and for
	// its own batch, 7 s each to be counted, or 10 s each to be written and written again by itself.
	behindLock = 22 * time.Second
	// recovery is how soon after the database's return requests are served again.
	recovery = 2 * time.Second
)

// byForm returns what the short or the long form of a test has.
func byForm[T any](short, long T) T {
	if storetest.Long() {
		return long
	}
	return short
}

// TestFaultDatabase breaks PostgreSQL in each way, again and again, while clients create runs of two accounts, one of which
// has a quota, through two processes. Another session holds locks that requests need: they are refused while it does.
// At last one of the processes is killed, again and again. Kills that cut off no request do not count.
func TestFaultDatabase(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t, "max_connections=60") // two processes use 48
	// The short form's lock_timeout is instead of 5 s.
	url := c.URL() + byForm("&lock_timeout=500ms", "")
	l := newLoad(t, url, 2)
	account := cli[struct{ ID string }](t, url, "accounts", "create", "-name", "metered", "-plan", "test").ID
	cli[any](t, url, "accounts", "set-quota", account, "-jobs-per-month", "10000000")
	l.others = []string{newKey(t, url, account, 1_000_000).Key}
	l.begin(byForm(4, 64))
	l.recovered(t)
	away := func(end func()) func() {
		return func() {
			end()
			l.suffer(10 * time.Second)
			c.Start(t)
		}
	}
	locked := func(lock string) func() {
		return func() { holdLock(t, c.URL(), lock, func() { l.suffer(30 * time.Second) }) }
	}
	for _, fault := range []struct {
		name  string
		long  int // times; the short form does it once
		bound time.Duration
		hit   func()
	}{
		{"kill -9, back at once", 20, bounded, func() { crash(t, c) }},
		{"kill -9, away", 3, bounded, away(c.Kill)},
		{"stopped, away", 3, bounded, away(c.Stop)},
		{"connections cut", 50, bounded, func() { c.Exec(t, "aiv", cut) }},
		{"max_connections", 3, bounded, func() { takeConnections(t, c, l) }},
		{"frozen", 3, unanswered, func() {
			c.Freeze()
			defer c.Thaw()
			l.suffer(10 * time.Second)
		}},
		{"the runs are locked", 1, behindLock, locked(`LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`)},
		{"the windows of this minute and the next are locked", 1, behindLock, locked(`
			INSERT INTO api_rate_limit_buckets
			SELECT DISTINCT account_id, credential_id, date_bin('1 minute', clock_timestamp(), 'epoch') + make_interval(mins => m), 0, 0, 0
			FROM api_rate_limit_buckets, generate_series(0, 1) m
			ON CONFLICT (account_id, credential_id, window_start) DO UPDATE SET granted = 0`)},
		{"the revision of the credentials is locked", 1, behindLock, locked(`LOCK TABLE identity_revision IN ACCESS EXCLUSIVE MODE`)},
	} {
		t.Run(fault.name, func(t *testing.T) {
			l.mu.Lock()
			l.slowest = 0
			l.mu.Unlock()
			for range byForm(1, fault.long) {
				l.acknowledged(5)
				fault.hit()
				l.recovered(t)
			}
			l.survived(t, fault.bound)
		})
	}
	for k, hit := 0, 0; hit < byForm(2, 50); k++ {
		if k == 500 {
			t.Fatalf("of %d kills only %d cut off a request", k, hit)
		}
		l.acknowledged(1 + rand.IntN(20))
		before := l.cut.Load()
		l.process(k).kill()
		l.serves[k%2].Store(startServe(t, url))
		if l.cut.Load() > before {
			hit++
		}
	}
	l.end()
	l.check("faults of the database and of gateways")
}

func crash(t *testing.T, c *storetest.Cluster) {
	c.Kill()
	c.Start(t)
}

const cut = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'aiv' AND pid <> pg_backend_pid()`

// takeConnections takes all of the server's connections and keeps them for a while.
func takeConnections(t *testing.T, c *storetest.Cluster, l *load) {
	var taken []*pgx.Conn
	defer func() {
		for _, conn := range taken {
			conn.Close(context.Background())
		}
	}()
	storetest.Eventually(t, "aiv has no connections", func() bool {
		for {
			conn, err := pgx.Connect(t.Context(), c.URL())
			if err != nil {
				break
			}
			taken = append(taken, conn)
		}
		left := 1
		if len(taken) > 0 {
			taken[0].QueryRow(t.Context(), cut).Scan(&left)
		}
		return left == 0
	})
	l.suffer(10 * time.Second)
}

// holdLock calls during while another session holds a lock.
func holdLock(t *testing.T, url, lock string, during func()) {
	t.Helper()
	tx := storetest.Begin(t, open(t, url), lock)
	during()
	must(t, tx.Rollback(t.Context()))
}

// TestFaultFailover: a primary with a synchronous standby is killed while clients create runs and workers work them
// through two dispatchers, and the standby promoted; the URL names both. Every acknowledged run and settlement is in its
// database.
func TestFaultFailover(t *testing.T) {
	t.Parallel()
	for range byForm(1, 5) {
		primary := storetest.NewCluster(t)
		standby := primary.Standby(t)
		// From here on every acknowledged transaction is on the disk of the standby.
		primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
		waitUntil(t, primary.URL(), `SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
		url := storetest.ClusterURL("&target_session_attrs=read-write", primary, standby)

		l := newLoad(t, url, 2)
		l.most = 2
		f := newFleet(t, url, 2) // which works the runs of the clients
		f.forgetful = 0.05
		l.begin(8)
		f.begin(6)
		l.recovered(t)
		l.acknowledged(20)
		var before, failed int
		f.until("jobs are settled", func(settled, n int) bool { failed = n; return settled > 0 })
		primary.Kill()
		l.suffer(3 * time.Second) // until the failover is decided
		f.until("requests of workers fail", func(settled, n int) bool { before = settled; return n > failed })
		standby.Exec(t, "postgres", "SELECT pg_promote()")
		promoted := time.Now()
		l.recovered(t)
		f.until("jobs are settled again", func(settled, _ int) bool { return settled > before })
		if took := time.Since(promoted); storetest.Long() && took > recovery {
			t.Errorf("jobs were settled again after %v, want %v at most", took, recovery)
		}
		l.acknowledged(20)
		l.end()
		l.check("failover")
		l.survived(t, bounded)
		pool := open(t, url)
		f.end(pool)
		f.check("failover", pool)
	}
}

// suffer waits until a request gets 503 during a fault, which the long form lets last for a while.
func (l *load) suffer(lasting time.Duration) {
	l.t.Helper()
	l.got(http.StatusServiceUnavailable, 1)
	if storetest.Long() {
		<-time.After(lasting)
	}
}

// recovered waits until each process serves reads and writes again. The long form bounds how long that takes.
func (l *load) recovered(t *testing.T) {
	t.Helper()
	began := time.Now()
	for i := range l.serves {
		p := l.process(i)
		storetest.Eventually(t, p.cmd.String()+" serves again", func() bool {
			read, err := p.do(t.Context(), "GET", "?path=/v1/runs&limit=1", l.key, "", "")
			if err != nil || read.status != http.StatusOK {
				return false
			}
			written, err := p.do(t.Context(), "POST", "", l.key, "probe", testRun)
			return err == nil && written.status == http.StatusAccepted
		})
	}
	if took := time.Since(began); storetest.Long() && took > recovery {
		t.Errorf("served again after %v, want %v at most", took, recovery)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys["probe"] = &asked{key: l.key, body: testRun, jobs: 6}
}

// survived checks that no process ended and, in the long form, that no response took longer than bound.
func (l *load) survived(t *testing.T, bound time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.serves {
		l.process(i).isRunning(t)
	}
	if t.Logf("slowest exchange %v", l.slowest); storetest.Long() && l.slowest > bound {
		t.Errorf("a response took %v, want %v at most", l.slowest, bound)
	}
}
