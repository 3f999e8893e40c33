package auth_test

import (
	"context"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// office is a database with an operator, a plan and an account.
type office struct {
	*auth.Admin
	account auth.Account
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{Admin: &auth.Admin{Pool: storetest.New(t), Actor: "olga"}}
	must(t, o.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}}))
	var err error
	o.account, err = o.CreateAccount(t.Context(), "Acme", "plan")
	must(t, err)
	return o
}

func (o *office) issue(t *testing.T, terms auth.Terms) auth.Issued {
	t.Helper()
	if terms.Name == nil {
		terms.Name = new("key")
	}
	c, err := o.CreateKey(t.Context(), o.account.ID, terms)
	must(t, err)
	return c
}

// valid returns the valid credentials of the keys, as requests find them.
func valid(t *testing.T, pool *pgxpool.Pool, keys ...string) map[string]*auth.Credential {
	t.Helper()
	var hashes []auth.Hash
	for _, k := range keys {
		hashes = append(hashes, hash(t, k))
	}
	credentials, err := auth.NewCredentialCache(pool, time.Minute, 1).Read(context.Background(), hashes)
	must(t, err)
	found := make(map[string]*auth.Credential)
	for i, c := range credentials {
		if c != nil {
			found[keys[i]] = c
		}
	}
	return found
}

func hash(t *testing.T, key string) auth.Hash {
	t.Helper()
	h, err := auth.HashKey(key)
	must(t, err)
	return h
}

// start calls f in another goroutine.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ignore(_ any, err error) error { return err }

// begin executes a statement in a transaction that the test ends.
func begin(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	must(t, ignore(tx.Exec(t.Context(), sql, args...)))
	return tx
}
