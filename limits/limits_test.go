package limits_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// outcomes has the outcomes of requests, by key and window.
type outcomes struct {
	mu  sync.Mutex
	all map[keyWindow]*tally
}

type keyWindow struct {
	key int
	end int64
}

type tally struct {
	remaining []int // as admitted requests were told
	refused   int
}

func (o *outcomes) add(key int, a *limits.Admission) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[keyWindow]*tally)
	}
	w := keyWindow{key, a.Window.End.Unix()}
	if o.all[w] == nil {
		o.all[w] = &tally{}
	}
	if a.Admitted {
		o.all[w].remaining = append(o.all[w].remaining, a.Window.Remaining)
	} else {
		o.all[w].refused++
	}
}

// wantExact fails the test unless each window admitted at most the limit, refused requests only beyond it, and told each
// admitted request another number of those that remain. Requests may fall into two minutes.
func (o *outcomes) wantExact(t *testing.T, limit int) {
	t.Helper()
	for w, of := range o.all {
		admitted := len(of.remaining)
		if admitted > limit || of.refused > 0 && admitted < limit {
			t.Errorf("key %d admitted %d and refused %d of a limit of %d until %d", w.key, admitted, of.refused, limit, w.end)
		}
		slices.Sort(of.remaining)
		for i, remaining := range of.remaining {
			if want := limit - admitted + i; remaining != want {
				t.Errorf("key %d: %d remained until %d, want %d", w.key, remaining, w.end, want)
			}
		}
	}
}

// TestExactLimit sends many more concurrent requests than the limits, through two processes, whose batches update many
// rows: no deadlock, no request lost or counted twice.
func TestExactLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ keys, limit, requests int }{{1, 100, 600}, {60, 10, 1200}} {
		t.Run(fmt.Sprint(test.keys, " keys"), func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			processes := []*limits.Limiter{process(t, url), process(t, url)}
			pool := open(t, url)
			keys := make([]auth.Hash, test.keys)
			for i := range keys {
				keys[i], _, _ = customer(t, pool, test.limit)
			}
			var got outcomes
			var wg sync.WaitGroup
			for i := range test.requests {
				wg.Go(func() {
					a, err := processes[i%2].Admit(t.Context(), keys[i%test.keys])
					if err != nil {
						t.Error(err)
						return
					}
					got.add(i%test.keys, a)
				})
			}
			wg.Wait()
			got.wantExact(t, test.limit)
		})
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
	stats := limiter.Stats()
	equal(t, []uint64{200, 0}, []uint64{stats.Lookups.Inputs, stats.Counts.Inputs}, "lookups and counts")
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
