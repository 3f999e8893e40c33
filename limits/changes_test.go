package limits

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
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
		{"its own limit", set(auth.Terms{RateLimit: new(1_000_000)}), "1000000 [y] [runs:read]"},
		{"a lower limit", set(auth.Terms{RateLimit: new(500)}), "500 [y] [runs:read]"},
		{"disabled", state(s.admin.DisableKey), ""},
		{"enabled", state(s.admin.EnableKey), "500 [y] [runs:read]"},
		{"expired", func() error { // the command tells aiv of the change also on a cluster
			s.set(t, key, auth.Terms{ExpiresAt: new(time.Now().Add(time.Hour))})
			return ignore(s.pool.Exec(t.Context(), `UPDATE credentials SET expires_at = now() WHERE expires_at IS NOT NULL`))
		}, ""},
		{"no expiry", set(auth.Terms{ExpiresAt: new(time.Time)}), "500 [y] [runs:read]"},
		{"revoked", state(s.admin.RevokeKey), ""},
	} {
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

// TestFailedLookupIsNoUnknownKey: if the credentials have changed and cannot be read, a request gets the error. A valid
// key is not reported as unknown.
func TestFailedLookupIsNoUnknownKey(t *testing.T) {
	s := newSite(t)
	k, lookups := s.key(t, 100), open(t, s.url)
	limiter := newLimiter(t, Config{Pool: lookups, Counts: s.pool, MaxWaiting: 10})
	admitted(t, limiter, k)
	s.set(t, k, auth.Terms{Name: new("changed")})
	lookups.Close()
	if _, err := limiter.Admit(t.Context(), k.Hash); err == nil || errors.Is(err, ErrUnknownKey) {
		t.Errorf("got %v, want the error of the lookup", err)
	}
}
