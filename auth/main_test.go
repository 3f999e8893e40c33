package auth_test

import (
	"testing"
	"time"

	"aiv/auth"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var kept storetest.Kept[*pgxpool.Pool]

// office is a database with an operator, a plan and an account.
type office struct {
	*auth.Admin
	t       *testing.T
	account auth.Account
}

// newOffice returns an office for a test, which runs in parallel with others.
func newOffice(t *testing.T) *office {
	t.Helper()
	t.Parallel()
	pool := kept.Take(t, storetest.New, func(pool *pgxpool.Pool) error {
		return storetest.Clear(pool, "credentials accounts plans workers audit_log", "")
	})
	o := &office{Admin: &auth.Admin{Pool: pool, Actor: "olga"}, t: t}
	must(t, o.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}}))
	o.account = o.create("Acme", "plan")
	return o
}

// create creates an account.
func (o *office) create(name, plan string) auth.Account {
	o.t.Helper()
	account, err := o.CreateAccount(o.t.Context(), name, plan)
	must(o.t, err)
	return account
}

// key returns a credential, and ends the test if there is an error.
func (o *office) key(c auth.Issued, err error) auth.Issued {
	o.t.Helper()
	must(o.t, err)
	return c
}

func (o *office) issue(terms auth.Terms) auth.Issued {
	o.t.Helper()
	if terms.Name == nil {
		terms.Name = new("key")
	}
	return o.key(o.CreateKey(o.t.Context(), o.account.ID, terms))
}

func (o *office) exec(sql string, args ...any) {
	o.t.Helper()
	must(o.t, ignore(o.Pool.Exec(o.t.Context(), sql, args...)))
}

// valid returns the credentials of keys as requests find them; nil: the key is not valid.
func (o *office) valid(keys ...string) []*auth.Credential {
	o.t.Helper()
	var hashes []auth.Hash
	for _, k := range keys {
		hash, err := auth.HashKey(k)
		must(o.t, err)
		hashes = append(hashes, hash)
	}
	found, err := auth.NewCredentialCache(o.Pool, time.Minute, 1).Read(o.t.Context(), hashes)
	must(o.t, err)
	return found
}

// from returns a time from now, as the database stores it.
func from(d time.Duration) *time.Time { return new(time.Now().Add(d).UTC().Truncate(time.Microsecond)) }

// start calls f in another goroutine.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

var must, ignore = storetest.Must, storetest.Ignore

// equal reports a difference between two values.
func equal[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
