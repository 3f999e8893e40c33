package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultGatewayCrash: one of two processes is killed after a random number of responses, again and again, while
// clients create runs of two accounts, one of which has a quota. Kills that cut off no request do not count.
func TestFaultGatewayCrash(t *testing.T) {
	t.Parallel()
	clients, kills := byForm(12, 16), byForm(2, 50)
	url := storetest.NewCluster(t).URL()
	l := newLoad(t, url, 2)
	account := cli[struct{ ID string }](t, url, "accounts", "create", "-name", "metered", "-plan", "test").ID
	cli[any](t, url, "accounts", "set-quota", account, "-jobs-per-month", "10000000")
	l.others = []string{newKey(t, url, account, 1_000_000).Key}
	l.pause = 0 // so that each kill cuts off requests
	l.begin(clients)
	for k, hit := 0, 0; hit < kills; k++ {
		if k == 10*kills {
			t.Fatalf("of %d kills only %d cut off a request", k, hit)
		}
		l.acknowledged(1 + rand.IntN(100))
		serves := [...]*process{l.process(0), l.process(1)}
		before := l.cut.Load()
		serves[k%2].kill()
		serves[k%2] = startServe(t, url)
		both := serves[:]
		l.serves.Store(&both)
		if l.cut.Load() > before {
			hit++
		}
	}
	l.end()
	l.check("kill -9 of a gateway")
}

// TestFaultLock: another session holds a lock that requests need. They are refused while it is held, and served after
// that. Each process waits with all of its connections, so the server is not the one that other tests use.
func TestFaultLock(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t)
	url, clients := c.URL(), 64
	if !storetest.Long() {
		url, clients = url+"&lock_timeout=500ms", 4 // instead of 5 s
	}
	l := newLoad(t, url, 2)
	l.begin(clients)
	l.recovered(t)
	for _, fault := range []struct{ name, lock string }{
		{"the runs", `LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`},
		{"the windows of this minute and the next", `
			INSERT INTO api_rate_limit_buckets
			SELECT DISTINCT account_id, credential_id, date_bin('1 minute', clock_timestamp(), 'epoch') + make_interval(mins => m), 0, 0, 0
			FROM api_rate_limit_buckets, generate_series(0, 1) m
			ON CONFLICT (account_id, credential_id, window_start) DO UPDATE SET granted = 0`},
		{"the revision of the credentials", `LOCK TABLE identity_revision IN ACCESS EXCLUSIVE MODE`},
	} {
		t.Run(fault.name, func(t *testing.T) {
			l.anew()
			holdLock(t, c.URL(), fault.lock, func() { l.suffer(30 * time.Second) })
			took := l.recovered(t)
			l.survived(t, behindLock)
			t.Logf("a lock on %s: recovered %v after its release", fault.name, took.Round(time.Millisecond))
		})
	}
	l.end()
	l.check("locks")
}

// holdLock calls during while another session holds a lock.
func holdLock(t *testing.T, url, lock string, during func()) {
	t.Helper()
	session := dial(t, url)
	_, err := session.Exec(t.Context(), "BEGIN")
	must(t, err)
	_, err = session.Exec(t.Context(), lock)
	must(t, err)
	during()
	must(t, session.Close(t.Context()))
}

// TestFaultFailover: a primary with a synchronous standby is killed under load, and the standby promoted; the URL names
// both. Every acknowledged run is in its database.
func TestFaultFailover(t *testing.T) {
	t.Parallel()
	times := byForm(1, 5)
	var slowest time.Duration
	for range times {
		url, primary, standby := replicated(t)
		l := newLoad(t, url, 2)
		l.begin(8)
		l.recovered(t)
		l.acknowledged(20)
		primary.Kill()
		l.suffer(3 * time.Second) // until the failover is decided
		standby.Exec(t, "postgres", "SELECT pg_promote()")
		slowest = max(slowest, l.recovered(t))
		l.acknowledged(20)
		l.end()
		l.check("failover")
		l.survived(t, bounded)
	}
	t.Logf("failover: %d times, back %v after the promotion at the latest", times, slowest.Round(time.Millisecond))
}

// replicated starts a primary with a synchronous standby, and returns a URL that names both.
func replicated(t *testing.T) (url string, primary, standby *storetest.Cluster) {
	t.Helper()
	primary = storetest.NewCluster(t)
	standby = primary.Standby(t)
	// From here on every acknowledged transaction is on the disk of the standby.
	primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
	waitUntil(t, primary.URL(), `SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
	return storetest.ClusterURL("&target_session_attrs=read-write", primary, standby), primary, standby
}

// waitUntil waits until a query returns true.
func waitUntil(t *testing.T, url, question string) {
	t.Helper()
	conn := dial(t, url)
	defer conn.Close(t.Context())
	storetest.Eventually(t, question, func() (yes bool) {
		t.Helper()
		must(t, conn.QueryRow(t.Context(), question).Scan(&yes))
		return yes
	})
}
