package limits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is a database with an account.
type site struct {
	url     string // of the processes
	pool    *pgxpool.Pool
	admin   *auth.Admin
	account store.ID
}

// newSite returns a new site. The test runs beside others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	s := &site{url: storetest.URL(t)}
	s.pool = open(t, s.url)
	s.admin = &auth.Admin{Pool: s.pool, Actor: "test"}
	must(t, s.admin.SetPlan(t.Context(), auth.Plan{Code: "test", Features: []string{auth.APIAccess}}))
	account, err := s.admin.CreateAccount(t.Context(), "test", "test")
	must(t, err)
	s.account = account.ID
	return s
}

// A key is a key of an account.
type key struct {
	auth.Hash
	id store.ID
}

// key creates a key with its own limit, or with the plan's if it is 0.
func (s *site) key(t testing.TB, limit int) key {
	t.Helper()
	terms := auth.Terms{Name: new("key"), Scopes: auth.Scopes}
	if limit > 0 {
		terms.RateLimit = &limit
	}
	issued, err := s.admin.CreateKey(t.Context(), s.account, terms)
	must(t, err)
	hash, err := auth.HashKey(issued.Key)
	must(t, err)
	return key{hash, issued.ID}
}

// set changes a key.
func (s *site) set(t testing.TB, k key, terms auth.Terms) {
	t.Helper()
	must(t, ignore(s.admin.SetKey(t.Context(), k.id, terms)))
}

func (s *site) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	must(t, ignore(s.pool.Exec(t.Context(), sql, args...)))
}

func (s *site) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// open returns a pool whose sessions wait for locks until the test releases them.
func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return storetest.Open(t, url, store.OpenHot, 4)
}

// process returns a limiter with its own connections, like another process's.
func (s *site) process(t testing.TB) *Limiter {
	t.Helper()
	return newLimiter(t, Config{Pool: open(t, s.url), MaxWaiting: 100_000})
}

func newLimiter(t testing.TB, c Config) *Limiter {
	t.Helper()
	if c.Counts == nil {
		var err error
		c.Counts, err = OpenCounts(t.Context(), c.Pool)
		must(t, err)
		t.Cleanup(c.Counts.Close)
	}
	c.Timeout, c.CatalogRevision = 2*time.Minute, "0::bigint"
	return New(c)
}

// TestExactLimit sends many more concurrent requests than the limits, through two processes, whose batches update many
// rows, while an operator changes a key: no deadlock, no request lost or counted twice.
func TestExactLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ keys, limit, requests int }{{1, 100, 600}, {60, 10, 1200}} {
		t.Run(fmt.Sprint(test.keys, " keys"), func(t *testing.T) {
			s := newSite(t)
			processes := []*Limiter{s.process(t), s.process(t)}
			var keys []key
			for range test.keys {
				keys = append(keys, s.key(t, test.limit))
			}
			// By key and window, how many requests remained as admitted ones were told, and -1 for each refused one.
			all := make(map[string][]int)
			var mu sync.Mutex
			storetest.AtOnce(test.requests, func(i int) {
				if i%200 == 0 {
					s.set(t, keys[0], auth.Terms{Name: new(fmt.Sprint("change ", i))})
				}
				a, err := processes[i%2].Admit(t.Context(), keys[i%test.keys].Hash, nil)
				if err != nil {
					t.Error(err)
					return
				}
				window, remaining := fmt.Sprintf("key %d, the window until %v", i%test.keys, a.Window.End), -1
				if a.Admitted {
					remaining = a.Window.Remaining
				}
				mu.Lock()
				defer mu.Unlock()
				all[window] = append(all[window], remaining)
			})
			for window, got := range all { // requests may fall into two minutes
				slices.Sort(got)
				slices.Reverse(got)
				for i, remaining := range got {
					if want := max(test.limit-1-i, -1); remaining != want {
						t.Errorf("%s: %d remained after %d of %d requests, want %d", window, remaining, i+1, len(got), want)
					}
				}
			}
		})
	}
}

var must, equal, ignore = storetest.Must, storetest.Equal, storetest.Ignore

// admitted fails the test unless a request is admitted.
func admitted(t testing.TB, l *Limiter, k key, what ...any) *Admission {
	t.Helper()
	a, err := l.Admit(t.Context(), k.Hash, nil)
	must(t, err)
	if !a.Admitted {
		t.Errorf("%s: got %+v", fmt.Sprint(what...), a)
	}
	return a
}

// unknown fails the test unless a key is refused.
func unknown(t testing.TB, l *Limiter, k key, what ...any) {
	t.Helper()
	if _, err := l.Admit(t.Context(), k.Hash, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("%s: got %v", fmt.Sprint(what...), err)
	}
}

// together counts one request of each key in one batch, which waits for locks for as long as the sessions allow. It
// returns how many requests remain, and whether each is admitted; nothing for a key that is not valid.
func together(t testing.TB, l *Limiter, keys ...key) (remaining []string) {
	t.Helper()
	var asked []request
	for _, k := range keys {
		asked = append(asked, request{key: k.Hash})
	}
	all, err := l.admit(t.Context(), l.cfg.Pool, asked)
	must(t, err)
	for _, a := range all {
		word := ""
		if a != nil {
			word = fmt.Sprint(a.Window.Remaining, " ", a.Admitted)
		}
		remaining = append(remaining, word)
	}
	return remaining
}

// TestNextRequest changes a credential, its plan or its account between two requests, in another process than the
// requests. Each change holds for the next request.
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
		{"the account's plan", func() error { return ignore(s.admin.SetAccountPlan(t.Context(), s.account, "other")) }, "800 [y] [runs:read]"},
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
		_, err := limiter.Admit(t.Context(), other.Hash, nil) // reads the new revision
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
	if _, err := limiter.Admit(t.Context(), k.Hash, nil); err == nil || errors.Is(err, ErrUnknownKey) {
		t.Errorf("got %v, want the error of the lookup", err)
	}
}
