package limits_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/limits"
	"aiv/store"
	"aiv/store/storetest"
)

// TestNextRequest changes a credential, its plan or its account between two requests, in another process than that of
// the requests. Each change holds for the next request.
func TestNextRequest(t *testing.T) {
	s := newSite(t)
	limiter, key, other := s.process(t), s.key(t, 0), s.key(t, 0)
	plan := func(code, feature string, limit int) func() error {
		return func() error {
			return s.admin.SetPlan(t.Context(), auth.Plan{Code: code, Features: []string{feature}, RateLimit: &limit})
		}
	}
	set := func(terms auth.Terms) func() error {
		return func() error { return ignore(s.admin.SetKey(t.Context(), key.id, terms)) }
	}
	state := func(change func(context.Context, store.ID) (auth.Issued, error)) func() error {
		return func() error { return ignore(change(t.Context(), key.id)) }
	}
	sql := func(sql string) func() error { return func() error { return ignore(s.pool.Exec(t.Context(), sql)) } }
	const inSQL = "the plan in SQL, as a replica writes"
	for _, test := range []struct {
		name   string
		change func() error
		want   string // the limit, the features and the scopes; none: the key is unknown
	}{
		{"nothing", set(auth.Terms{}), fmt.Sprint(auth.DefaultRateLimit, " [api_access] ", auth.Scopes)},
		{"the scopes", set(auth.Terms{Scopes: []string{"runs:read"}}), "60 [api_access] [runs:read]"},
		{"the plan's limit and features", plan("test", "x", 700), "700 [x] [runs:read]"},
		{"another plan", plan("other", "y", 800), "700 [x] [runs:read]"},
		{"the account's plan", func() error {
			return ignore(s.admin.SetAccountPlan(t.Context(), s.account, "other"))
		}, "800 [y] [runs:read]"},
		{inSQL, sql(`
			BEGIN; SET LOCAL session_replication_role = replica; UPDATE plans SET rate_limit_per_minute = 900; COMMIT`),
			"900 [y] [runs:read]"},
		{"its own limit", set(auth.Terms{RateLimit: new(1_000_000)}), "1000000 [y] [runs:read]"},
		{"a lower limit", set(auth.Terms{RateLimit: new(500)}), "500 [y] [runs:read]"},
		{"disabled", state(s.admin.DisableKey), ""},
		{"enabled", state(s.admin.EnableKey), "500 [y] [runs:read]"},
		{"expired", func() error { // the command tells aiv of the change also on a cluster
			return errors.Join(set(auth.Terms{ExpiresAt: new(time.Now().Add(time.Hour))})(),
				sql(`UPDATE credentials SET expires_at = now() WHERE expires_at IS NOT NULL`)())
		}, ""},
		{"no expiry", set(auth.Terms{ExpiresAt: new(time.Time)}), "500 [y] [runs:read]"},
		{"revoked", state(s.admin.RevokeKey), ""},
	} {
		if test.name == inSQL && storetest.OnCitus() {
			continue // a cluster has no triggers, so that only aiv may change these tables
		}
		must(t, test.change())
		_, err := limiter.Admit(t.Context(), other.Hash) // reads the new revision
		must(t, err)
		if test.want == "" {
			unknown(t, limiter, key, test.name)
			continue
		}
		a := admitted(t, limiter, key, test.name)
		equal(t, test.want, fmt.Sprint(a.Window.Limit, a.Credential.Plan.Features, a.Credential.Scopes), test.name)
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
	storetest.AtOnce(200, func(i int) {
		if i%2 == 0 {
			unknown(t, limiter, lost)
		} else if _, err := limiter.Admit(t.Context(), kept.Hash); err != nil {
			t.Error(err)
		}
	})
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
