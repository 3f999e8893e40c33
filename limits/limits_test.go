package limits_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/limits"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// customer creates a plan, an account and a key with the given limit.
func customer(t testing.TB, pool *pgxpool.Pool, limit int) (auth.Hash, auth.Issued, *auth.Admin) {
	t.Helper()
	ctx := t.Context()
	admin := &auth.Admin{Pool: pool, Actor: "test"}
	must(t, admin.SetPlan(ctx, auth.Plan{Code: "test", Features: []string{auth.APIAccess}}))
	account, err := admin.CreateAccount(ctx, "test", "test")
	must(t, err)
	hash, key := anotherKey(t, admin, account.ID, "test", &limit)
	return hash, key, admin
}

// anotherKey creates a key of an account, with its own limit unless that is nil.
func anotherKey(t testing.TB, admin *auth.Admin, account store.ID, name string, limit *int) (auth.Hash, auth.Issued) {
	t.Helper()
	key, err := admin.CreateKey(t.Context(), account, auth.Terms{Name: &name, Scopes: auth.Scopes, RateLimit: limit})
	must(t, err)
	hash, err := auth.HashKey(key.Key)
	must(t, err)
	return hash, key
}

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.OpenHot(t.Context(), url, 4)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// process returns a limiter with its own pool, like that of another process.
func process(t testing.TB, url string) *limits.Limiter {
	t.Helper()
	return processWith(t, url, 100_000)
}

// processWith returns a limiter with new connections. Requests that are retried wait for locks until the test releases
// them.
func processWith(t testing.TB, url string, maxWaiting int) *limits.Limiter {
	t.Helper()
	pool := open(t, url+"&lock_timeout=1min")
	counts, err := limits.OpenCounts(t.Context(), pool)
	must(t, err)
	t.Cleanup(counts.Close)
	return newLimiter(pool, counts, maxWaiting)
}

// newLimiterAndPool returns a limiter of a new database and a pool of the test.
func newLimiterAndPool(t testing.TB) (*limits.Limiter, *pgxpool.Pool) {
	t.Helper()
	url := storetest.URL(t)
	return process(t, url), open(t, url)
}

func newLimiter(pool, counts *pgxpool.Pool, maxWaiting int) *limits.Limiter {
	return limits.New(limits.Config{
		Pool: pool, Counts: counts, Timeout: 2 * time.Minute, MaxWaiting: maxWaiting, CatalogRevision: "0::bigint",
	})
}

// window counts the outcomes of the requests of one window.
type window struct {
	admitted, refused int
	remaining         map[int]int
}

// TestExactLimit sends many more concurrent requests than the limit, through two processes.
func TestExactLimit(t *testing.T) {
	t.Parallel()
	const limit, requests = 100, 600
	url := storetest.URL(t)
	processes := []*limits.Limiter{process(t, url), process(t, url)}
	pool := open(t, url)
	key, _, _ := customer(t, pool, limit)

	windows := make(map[time.Time]*window)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			a, err := processes[i%2].Admit(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			w := windows[a.Window.End]
			if w == nil {
				w = &window{remaining: make(map[int]int)}
				windows[a.Window.End] = w
			}
			if !a.Admitted {
				w.refused++
				return
			}
			w.admitted++
			w.remaining[a.Window.Remaining]++
		})
	}
	wg.Wait()
	// The requests may fall into two minutes; each of them must be exact.
	answered := 0
	for end, w := range windows {
		answered += w.admitted + w.refused
		if w.admitted > limit || w.refused > 0 && w.admitted != limit {
			t.Errorf("window until %v: %d admitted and %d refused of a limit of %d", end, w.admitted, w.refused, limit)
		}
		for left, n := range w.remaining {
			if n != 1 || left < 0 || left >= limit {
				t.Errorf("window until %v: remaining %d was returned %d times", end, left, n)
			}
		}
	}
	if answered != requests {
		t.Errorf("%d of %d requests were answered", answered, requests)
	}
}

// TestManyKeys updates many rows in the batches of two processes: no deadlock, no request lost or counted twice.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	const keys, each, limit = 60, 20, 10
	url := storetest.URL(t)
	processes := []*limits.Limiter{process(t, url), process(t, url)}
	pool := open(t, url)
	hashes := make([]auth.Hash, keys)
	for i := range hashes {
		hashes[i], _, _ = customer(t, pool, limit)
	}
	admitted := make([]atomic.Int64, keys)
	ends := make(chan time.Time, keys*each)
	var wg sync.WaitGroup
	for i := range keys * each {
		wg.Go(func() {
			a, err := processes[i%2].Admit(t.Context(), hashes[i%keys])
			if err != nil {
				t.Error(err)
				return
			}
			ends <- a.Window.End
			if a.Admitted {
				admitted[i%keys].Add(1)
			}
		})
	}
	wg.Wait()
	close(ends)
	windows := make(map[time.Time]bool)
	for end := range ends {
		windows[end] = true
	}
	for i := range admitted {
		if n := int(admitted[i].Load()); n < limit || n > limit*len(windows) {
			t.Errorf("key %d: %d admitted in %d windows of %d", i, n, len(windows), limit)
		}
	}
}

// TestDisconnectIsCounted: a request counts although its caller gives up.
func TestDisconnectIsCounted(t *testing.T) {
	t.Parallel()
	limiter, pool := newLimiterAndPool(t)
	key, _, _ := customer(t, pool, 1000)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		before, err := limiter.Admit(t.Context(), key)
		must(t, err)
		if _, err := limiter.Admit(gone, key); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		after, err := limiter.Admit(t.Context(), key) // in a later batch
		must(t, err)
		if !after.Window.End.Equal(before.Window.End) {
			continue // the minute ended in between
		}
		equal(t, before.Window.Remaining-2, after.Window.Remaining, "remaining")
		return
	}
}

// TestUnknownKeysAreNotCounted: many concurrent requests with unknown keys write nothing.
func TestUnknownKeysAreNotCounted(t *testing.T) {
	t.Parallel()
	limiter, pool := newLimiterAndPool(t)
	customer(t, pool, 1000)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if _, err := limiter.Admit(t.Context(), auth.Hash{byte(i)}); !errors.Is(err, limits.ErrUnknownKey) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	equal(t, 0, count(t, pool, `SELECT count(*) FROM api_rate_limit_buckets`), "buckets")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ignore(_ any, err error) error { return err }

// equal reports a difference between two values, which what describes.
func equal[T any](t testing.TB, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

func count(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// admitted fails the test unless a request is admitted.
func admitted(t testing.TB, l *limits.Limiter, key auth.Hash, what ...any) *limits.Admission {
	t.Helper()
	a, err := l.Admit(t.Context(), key)
	must(t, err)
	if !a.Admitted {
		t.Errorf("%s: got %+v", fmt.Sprint(what...), a)
	}
	return a
}

// unknown fails the test unless a key is refused.
func unknown(t testing.TB, l *limits.Limiter, key auth.Hash, what string) {
	t.Helper()
	if _, err := l.Admit(t.Context(), key); !errors.Is(err, limits.ErrUnknownKey) {
		t.Errorf("%s: got %v", what, err)
	}
}
