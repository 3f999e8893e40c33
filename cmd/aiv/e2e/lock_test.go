package e2e

import (
	"testing"
	"time"

	"aiv/store/storetest"
)

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
