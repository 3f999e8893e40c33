package e2e

import (
	"context"
	"testing"
	"time"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// TestFaultLock: a stranger holds a lock that requests need.
func TestFaultLock(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct{ name, lock string }{
		{"the runs", `LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`},
		{"a window", `SELECT FROM api_rate_limit_buckets FOR UPDATE`},
		{"the revision of the credentials", `LOCK TABLE identity_revision IN ACCESS EXCLUSIVE MODE`},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			// Longer than requests wait for a lock: 5 s, unless the URL says otherwise.
			url, held := storetest.URL(t)+"&lock_timeout=500ms", 2*time.Second
			if storetest.Long() {
				url, held = storetest.URL(t), 30*time.Second
			}
			clients := 16
			if storetest.Long() {
				clients = 64
			}
			l := newLoad(t, url, 2)
			l.begin(clients)
			l.recovered(t)
			stranger, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close(context.Background())
			tx, err := stranger.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), fault.lock); err != nil {
				t.Fatal(err)
			}
			<-time.After(held)
			l.mu.Lock()
			refused := l.statuses[503]
			l.mu.Unlock()
			if refused == 0 {
				t.Error("nothing was refused while the lock was held")
			}
			tx.Rollback(t.Context())
			took := l.recovered(t)
			l.end()
			l.check("a lock on " + fault.name)
			l.survived(t, behindLock)
			t.Logf("a lock on %s: back %v after its end", fault.name, took.Round(time.Millisecond))
		})
	}
}
