package limits_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/limits"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"
)

// lockRows locks all counts of a credential from another session, until the function that it returns is called.
func lockRows(t *testing.T, url string, key auth.Issued) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	must(t, err)
	// The counts of the next minutes exist already, so that the lock lasts beyond the end of this one.
	must(t, ignore(tx.Exec(t.Context(), `
		INSERT INTO api_rate_limit_buckets
		SELECT $1, $2, date_bin('1 minute', clock_timestamp(), 'epoch') + make_interval(mins => m), 0, 0, 0 FROM generate_series(0, 2) m
		ON CONFLICT (account_id, credential_id, window_start) DO UPDATE SET granted = 0`, key.AccountID, key.ID)))
	return func() { must(t, tx.Rollback(context.Background())) }
}

// TestLockedRow: while another session has locked one credential's row, the other credentials are served, through
// several processes, and the locked one when the lock ends.
func TestLockedRow(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := open(t, url)
	locked, issued, admin := customer(t, pool, 1000)
	others := make([]auth.Hash, 20)
	for i := range others {
		others[i], _ = anotherKey(t, admin, issued.AccountID, "other", new(1_000_000))
	}
	processes := []*limits.Limiter{process(t, url), process(t, url)}
	for i, key := range append(others, locked) {
		must(t, ignore(processes[i%2].Admit(t.Context(), key)))
	}
	unlock := lockRows(t, url, issued)
	var waiting, serving sync.WaitGroup
	for i := range 20 {
		waiting.Go(func() {
			a, err := processes[i%2].Admit(t.Context(), locked)
			if storetest.OnCitus() && store.IsLockTimeout(err) {
				return // a cluster gives up on locks sooner
			}
			if err != nil || !a.Admitted {
				t.Errorf("the locked credential: got %+v, %v", a, err)
			}
		})
	}
	// The lock ends only after the others were served. A batch waits for it once, and then each request by itself.
	for i := range 2 * len(others) {
		serving.Go(func() {
			for range 5 {
				if a, err := processes[i%2].Admit(t.Context(), others[i/2]); err != nil || !a.Admitted {
					t.Errorf("another credential: got %+v, %v", a, err)
					return
				}
			}
		})
	}
	serving.Wait()
	unlock()
	waiting.Wait()
	admitted(t, processes[0], locked, "the credential after the lock")
	failed := processes[0].Stats().Counts.Failed + processes[1].Stats().Counts.Failed
	if failed == 0 || failed > 10 {
		t.Errorf("%d batches met the lock, want one or a few", failed)
	}
}

// TestWaitingPerCredential: a credential whose requests wait cannot take all places in the queue.
func TestWaitingPerCredential(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := open(t, url)
	locked, issued, admin := customer(t, pool, 1000)
	other, _ := anotherKey(t, admin, issued.AccountID, "other", nil)
	const most = 40
	l := processWith(t, url, most)
	for _, key := range []auth.Hash{locked, other} {
		must(t, ignore(l.Admit(t.Context(), key)))
	}
	unlock := lockRows(t, url, issued)
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for range 2 * most {
		wg.Go(func() {
			_, err := l.Admit(t.Context(), locked)
			switch {
			case errors.Is(err, batch.ErrOverloaded):
				mu.Lock()
				refused++
				mu.Unlock()
			case storetest.OnCitus() && store.IsLockTimeout(err): // a cluster gives up on locks sooner
			case err != nil:
				t.Error(err)
			}
		})
	}
	if _, err := l.Admit(t.Context(), other); err != nil {
		t.Errorf("another credential: %v", err)
	}
	unlock()
	wg.Wait()
	if refused < most {
		t.Errorf("%d of %d requests were refused; a quarter of %d may wait", refused, 2*most, most)
	}
}

// TestRowsAreLockedInOrder: a batch that waits for the first of its rows has locked none of the others, so that the
// batches of two processes do not wait for each other.
func TestRowsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("a cluster counts the requests of several servers in any order")
	}
	url := storetest.URL(t)
	pool := open(t, url)
	_, first, admin := customer(t, pool, 1000)
	const n = 20
	var keys []auth.Hash
	for range n {
		key, issued := anotherKey(t, admin, first.AccountID, "key", new(1000))
		if keys = append(keys, key); len(keys) == 1 || issued.ID.Compare(first.ID) < 0 {
			first = issued
		}
	}
	slices.Reverse(keys)
	// The counts of this minute and the next ones exist already.
	must(t, ignore(pool.Exec(t.Context(), `
		INSERT INTO api_rate_limit_buckets
		SELECT account_id, id, date_bin('1 minute', clock_timestamp(), 'epoch') + make_interval(mins => m), 0, 0, 0
		FROM credentials, generate_series(0, 2) m WHERE name = 'key' AND id <> $1`, first.ID)))
	unlock := lockRows(t, url, first)
	done := make(chan error, 1)
	// The batch waits until the test has looked.
	counts, err := store.OpenAnother(t.Context(), pool, 1, "lock_timeout", time.Minute)
	must(t, err)
	t.Cleanup(counts.Close)
	l := newLimiter(pool, counts, 100)
	go func() {
		_, err := l.AdmitTogether(t.Context(), keys)
		done <- err
	}()
	storetest.UntilWaiting(t, pool, "transactionid")
	equal(t, 3*(n-1), count(t, pool, `
		WITH free AS (SELECT FROM api_rate_limit_buckets WHERE credential_id <> $1 FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`,
		first.ID), "rows that are not locked")
	unlock()
	must(t, <-done)
}

// TestPoolInUse: counting waits for no connection that reads and writes use.
func TestPoolInUse(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := open(t, url)
	key, _, _ := customer(t, pool, 1000)
	counts, err := limits.OpenCounts(t.Context(), pool)
	must(t, err)
	t.Cleanup(counts.Close)
	l := limits.New(limits.Config{Pool: pool, Counts: counts, Timeout: 20 * time.Second, MaxWaiting: 10, CatalogRevision: "0::bigint"})
	admitted(t, l, key) // reads the credential
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		defer conn.Release()
	}
	admitted(t, l, key)
}
