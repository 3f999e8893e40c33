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
	s := newSite(t)
	limiter, key := s.process(t), s.key(t, 1000)

	for range 3 {
		admitted(t, limiter, key, "a fresh key")
	}
	// The minute may end between the following requests.
	const low, high = 2, 1_000_000
	s.set(t, key, auth.Terms{RateLimit: new(low)})
	first, err := limiter.Admit(t.Context(), key.Hash)
	must(t, err)
	if first.Window.Limit != low || first.Window.Remaining > 0 && first.Admitted && first.Window.Remaining != low-1 {
		t.Errorf("a lowered limit does not hold for the next request: %+v", first)
	}
	s.set(t, key, auth.Terms{RateLimit: new(high), Scopes: []string{"runs:read"}})
	if a := admitted(t, limiter, key, "a raised limit"); a.Window.Limit != high || len(a.Credential.Scopes) != 1 {
		t.Errorf("a raised limit or a changed scope does not hold for the next request: %+v", a)
	}
	must(t, ignore(s.admin.DisableKey(t.Context(), key.id)))
	unknown(t, limiter, key, "a disabled key")
	must(t, ignore(s.admin.EnableKey(t.Context(), key.id)))
	admitted(t, limiter, key, "an enabled key")
	s.set(t, key, auth.Terms{ExpiresAt: new(time.Now().Add(time.Hour))})
	s.exec(t, `UPDATE credentials SET expires_at = now() WHERE id = $1`, key.id)
	unknown(t, limiter, key, "an expired key")
	s.set(t, key, auth.Terms{ExpiresAt: new(time.Time)})
	admitted(t, limiter, key, "a key that expires no more")
	must(t, ignore(s.admin.RevokeKey(t.Context(), key.id)))
	unknown(t, limiter, key, "a revoked key")
}

// TestNextRequestAfterThePlan: a change of the plan or the account holds for the next request, too.
func TestNextRequestAfterThePlan(t *testing.T) {
	s := newSite(t)
	limiter, key := s.process(t), s.key(t, 0)
	for _, test := range []struct {
		name     string
		change   func() error
		limit    int
		features []string
		triggers bool // tell aiv of the change
	}{
		{"nothing", func() error { return nil }, auth.DefaultRateLimit, []string{auth.APIAccess}, false},
		{"the plan's limit and features", func() error {
			return s.admin.SetPlan(t.Context(), auth.Plan{Code: "test", Features: []string{"x"}, RateLimit: new(700)})
		}, 700, []string{"x"}, false},
		{"another plan", func() error {
			return s.admin.SetPlan(t.Context(), auth.Plan{Code: "other", Features: []string{"y"}, RateLimit: new(800)})
		}, 700, []string{"x"}, false},
		{"the account's plan", func() error {
			return ignore(s.admin.SetAccountPlan(t.Context(), s.account, "other"))
		}, 800, []string{"y"}, false},
		{"in SQL, as a replica writes", func() error {
			return ignore(s.pool.Exec(t.Context(), `
				BEGIN; SET LOCAL session_replication_role = replica; UPDATE plans SET rate_limit_per_minute = 900; COMMIT`))
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
	s := newSite(t)
	key := s.key(t, 1000)
	changes := 0
	traced := storetest.WithTracer(t, s.pool, &changer{func() {
		if changes++; changes > 100 {
			return // reported below
		}
		if _, err := s.pool.Exec(t.Context(), `UPDATE plans SET rate_limit_per_minute = $1`, 100+changes); err != nil {
			t.Error(err)
		}
	}})
	limiter := newLimiter(t, limits.Config{Pool: traced, Counts: traced, MaxWaiting: 10})
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
	s := newSite(t)
	limiter, kept := s.process(t), s.key(t, 1000)
	revision := s.count(t, `SELECT revision FROM identity_revision`)
	lost := s.key(t, 0)
	for _, k := range []key{kept, lost} {
		admitted(t, limiter, k)
	}
	s.exec(t, `DELETE FROM api_rate_limit_buckets`)
	must(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM credentials WHERE id = $1`, lost.id)
		if err == nil {
			_, err = tx.Exec(t.Context(), `UPDATE identity_revision SET revision = $1`, revision)
		}
		return err
	}))
	atOnce(200, func(i int) {
		if i%2 == 0 {
			unknown(t, limiter, lost)
		} else if _, err := limiter.Admit(t.Context(), kept.Hash); err != nil {
			t.Error(err)
		}
	})
}

// TestConcurrentChanges: each request is counted by the limit that held while it was counted, and none fails, while an
// operator makes one change after another.
func TestConcurrentChanges(t *testing.T) {
	const changes = 40
	s := newSite(t)
	limiter, key := s.process(t), s.key(t, 1_000_000)
	var before, after atomic.Int64 // the newest change that has begun, and the newest that has ended
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				ended := after.Load()
				a, err := limiter.Admit(t.Context(), key.Hash)
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
		s.set(t, key, auth.Terms{RateLimit: new(1_000_000 - i - 1)})
		after.Store(int64(i + 1))
	}
	close(done)
	wg.Wait()
}

// TestFailedLookupIsNoUnknownKey: if the credentials have changed and cannot be read, a request gets the error. A valid
// key is not reported as unknown.
func TestFailedLookupIsNoUnknownKey(t *testing.T) {
	s := newSite(t)
	k, lookups := s.key(t, 100), open(t, s.url)
	limiter := newLimiter(t, limits.Config{Pool: lookups, Counts: s.pool, MaxWaiting: 10})
	admitted(t, limiter, k)
	s.set(t, k, auth.Terms{Name: new("changed")})
	lookups.Close()
	if _, err := limiter.Admit(t.Context(), k.Hash); err == nil || errors.Is(err, limits.ErrUnknownKey) {
		t.Errorf("got %v, want the error of the lookup", err)
	}
}
