package e2e

import (
	"testing"
	"time"

	"aiv/store/storetest"
)

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
