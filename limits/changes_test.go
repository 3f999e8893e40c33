package limits_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/limits"
	"aiv/store/storetest"
)

// TestNextRequest changes a credential between two requests, in another process than that of the requests.
func TestNextRequest(t *testing.T) {
	t.Parallel()
	limiter, pool := newLimiterAndPool(t)
	key, c, admin := customer(t, pool, 1000)
	set := func(terms auth.Terms) {
		t.Helper()
		must(t, ignore(admin.SetKey(t.Context(), c.ID, terms)))
	}

	for range 3 {
		admitted(t, limiter, key, "a fresh key")
	}
	// The minute may end between the following requests.
	low, high := 2, 1_000_000
	set(auth.Terms{RateLimit: &low})
	first, err := limiter.Admit(t.Context(), key)
	must(t, err)
	if first.Window.Limit != low || first.Window.Remaining > 0 && first.Admitted && first.Window.Remaining != low-1 {
		t.Errorf("a lowered limit does not hold for the next request: %+v", first)
	}
	set(auth.Terms{RateLimit: &high, Scopes: []string{"runs:read"}})
	if a := admitted(t, limiter, key, "a raised limit"); a.Window.Limit != high || len(a.Credential.Scopes) != 1 {
		t.Errorf("a raised limit or a changed scope does not hold for the next request: %+v", a)
	}
	must(t, ignore(admin.DisableKey(t.Context(), c.ID)))
	unknown(t, limiter, key, "a disabled key")
	must(t, ignore(admin.EnableKey(t.Context(), c.ID)))
	admitted(t, limiter, key, "an enabled key")
	soon := time.Now().Add(time.Hour)
	set(auth.Terms{ExpiresAt: &soon})
	must(t, ignore(pool.Exec(t.Context(), `UPDATE credentials SET expires_at = now() WHERE id = $1`, c.ID)))
	unknown(t, limiter, key, "an expired key")
	set(auth.Terms{ExpiresAt: new(time.Time)})
	admitted(t, limiter, key, "a key that expires no more")
	must(t, ignore(admin.RevokeKey(t.Context(), c.ID)))
	unknown(t, limiter, key, "a revoked key")
}

// TestNextRequestAfterThePlan: a change of the plan or the account holds for the next request, too.
func TestNextRequestAfterThePlan(t *testing.T) {
	t.Parallel()
	limiter, pool := newLimiterAndPool(t)
	_, c, admin := customer(t, pool, 1000)
	key, _ := anotherKey(t, admin, c.AccountID, "without a limit", nil)
	for _, test := range []struct {
		name     string
		change   func() error
		limit    int
		features []string
		triggers bool // tell aiv of the change
	}{
		{"nothing", func() error { return nil }, auth.DefaultRateLimit, []string{auth.APIAccess}, false},
		{"the plan's limit and features", func() error {
			return admin.SetPlan(t.Context(), auth.Plan{Code: "test", Features: []string{"x"}, RateLimit: new(700)})
		}, 700, []string{"x"}, false},
		{"another plan", func() error {
			return admin.SetPlan(t.Context(), auth.Plan{Code: "other", Features: []string{"y"}, RateLimit: new(800)})
		}, 700, []string{"x"}, false},
		{"the account's plan", func() error {
			_, err := admin.SetAccountPlan(t.Context(), c.AccountID, "other")
			return err
		}, 800, []string{"y"}, false},
		{"in SQL, as a replica writes", func() error {
			_, err := pool.Exec(t.Context(), `BEGIN; SET LOCAL session_replication_role = replica; UPDATE plans SET rate_limit_per_minute = 900; COMMIT`)
			return err
		}, 900, []string{"y"}, true},
	} {
		if test.triggers && storetest.OnCitus() {
			continue // a cluster has no triggers, so that only aiv may change these tables
		}
		must(t, test.change())
		a := admitted(t, limiter, key, test.name)
		equal(t, test.limit, a.Window.Limit, test.name)
		equal(t, test.features, a.Credential.Plan.Features, test.name)
	}
}

// changer is a tracer that makes a change after each lookup of credentials.
type changer struct{ change func() }

type looksKey struct{}

func (c *changer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, looksKey{}, strings.Contains(q.SQL, "k.key_hash"))
}

func (c *changer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if looks, _ := ctx.Value(looksKey{}).(bool); looks {
		c.change()
	}
}

// TestEndlessChanges: a request is counted by the credential that was read for it, even if that changes before each
// count.
func TestEndlessChanges(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := open(t, url)
	key, _, _ := customer(t, pool, 1000)
	changes := 0
	traced := storetest.WithTracer(t, pool, &changer{func() {
		if changes++; changes > 100 {
			return // reported below
		}
		if _, err := pool.Exec(t.Context(), `UPDATE plans SET rate_limit_per_minute = $1`, 100+changes); err != nil {
			t.Error(err)
		}
	}})
	limiter := limits.New(limits.Config{Pool: traced, Timeout: time.Minute, MaxWaiting: 10, CatalogRevision: "0::bigint"})
	for i := range 10 {
		before := changes
		admitted(t, limiter, key, "request ", i)
		if n := changes - before; n > 2 { // the look-up of a key that is not known, and one more
			t.Fatalf("request %d: the key was read %d times", i, n)
		}
	}
}

// TestLostCredential: a cached credential that a restored database lacks does not fail the requests of others.
func TestLostCredential(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	limiter, pool := process(t, url), open(t, url)
	kept, c, admin := customer(t, pool, 1000)
	revision := count(t, pool, `SELECT revision FROM identity_revision`)
	lost, _ := anotherKey(t, admin, c.AccountID, "lost", nil)
	for _, key := range []auth.Hash{kept, lost} {
		must(t, ignore(limiter.Admit(t.Context(), key)))
	}
	must(t, ignore(pool.Exec(t.Context(), `DELETE FROM api_rate_limit_buckets`)))
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM credentials WHERE name = 'lost'`)
		if err == nil {
			_, err = tx.Exec(t.Context(), `UPDATE identity_revision SET revision = $1`, revision)
		}
		return err
	})
	must(t, err)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			key, want := kept, error(nil)
			if i%2 == 0 {
				key, want = lost, limits.ErrUnknownKey
			}
			if _, err := limiter.Admit(t.Context(), key); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	wg.Wait()
}

// TestConcurrentChanges: each request is counted by the limit that held while it was counted, and none fails, while an
// operator makes one change after another.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	const changes = 40
	limiter, pool := newLimiterAndPool(t)
	key, c, admin := customer(t, pool, 1_000_000)
	var before, after atomic.Int64 // the newest change that has begun, and the newest that has ended
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				ended := after.Load()
				a, err := limiter.Admit(t.Context(), key)
				if err != nil || !a.Admitted {
					t.Errorf("%+v, %v", a, err)
					return
				}
				if got := 1_000_000 - int64(a.Credential.RateLimit); got < ended || got > before.Load() || a.Window.Limit != a.Credential.RateLimit {
					t.Errorf("after change %d of %d a request was counted by change %d", ended, before.Load(), got)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range changes {
		before.Store(int64(i + 1))
		must(t, ignore(admin.SetKey(t.Context(), c.ID, auth.Terms{RateLimit: new(1_000_000 - i - 1)})))
		after.Store(int64(i + 1))
	}
	close(done)
	wg.Wait()
}
