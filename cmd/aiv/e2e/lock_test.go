package e2e

import (
	"context"
	"testing"
	"time"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// TestFaultLock: another session holds a lock that requests need.
func TestFaultLock(t *testing.T) {
	t.Parallel()
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
			t.Parallel()
			// Longer than requests wait for a lock: 5 s, unless the URL sets it.
			url, held := storetest.URL(t)+"&lock_timeout=500ms", 500*time.Millisecond
			if storetest.Long() {
				url, held = storetest.URL(t), 30*time.Second
			}
			clients := 4
			if storetest.Long() {
				clients = 64
			}
			l := newLoad(t, url, 2)
			l.begin(clients)
			l.recovered(t)
			session, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close(context.Background())
			tx, err := session.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), fault.lock); err != nil {
				t.Fatal(err)
			}
			<-time.After(held)
			l.refused(behindLock)
			tx.Rollback(t.Context())
			took := l.recovered(t)
			l.end()
			l.check("a lock on " + fault.name)
			l.survived(t, behindLock)
			t.Logf("a lock on %s: recovered %v after its release", fault.name, took.Round(time.Millisecond))
		})
	}
}
