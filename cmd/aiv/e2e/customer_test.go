package e2e

import (
	"context"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

type madeKey struct{ ID, Key string }

// database creates a migrated database.
func database(t *testing.T) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = storetest.URL(t)
	return url, open(t, url)
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.Open(t.Context(), url, 4)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func number(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// customer creates an account with a key, and a catalog with a model and two questions. When the test has ended, and
// its processes were killed, every invariant of the database must hold.
func customer(t *testing.T, databaseURL string, rate int) (account string, key madeKey) {
	t.Helper()
	t.Cleanup(func() { verify(t, databaseURL) })
	made := createCustomer(t, databaseURL, rate)
	return made.account, made.keys[rate]
}

// databaseOfCustomer is database and customer in one. It copies a database that has the customer, with a key for each
// of the rates that tests need.
func databaseOfCustomer(t *testing.T, rate int) (url string, pool *pgxpool.Pool, account string, key madeKey) {
	t.Helper()
	url, made := customers.Copy(t, func(t testing.TB, url string) createdCustomer {
		return createCustomer(t, url, 5, 100, 1000, 100_000, 1_000_000)
	})
	key, ok := made.keys[rate]
	if !ok {
		t.Fatalf("add the rate %d to databaseOfCustomer", rate)
	}
	pool = open(t, url)
	t.Cleanup(func() { verify(t, url) })
	return url, pool, made.account, key
}

// customers is package-level because all tests copy one database.
var customers storetest.Filled[createdCustomer]

type createdCustomer struct {
	account string
	keys    map[int]madeKey // by rate
}

func createCustomer(t testing.TB, databaseURL string, rates ...int) createdCustomer {
	t.Helper()
	made := createdCustomer{keys: make(map[int]madeKey)}
	asOperator(t, databaseURL, func(ctx context.Context, pool *pgxpool.Pool, admin *auth.Admin) error {
		if err := admin.SetPlan(ctx, auth.Plan{Code: "test", Features: []string{"api_access"}}); err != nil {
			return err
		}
		a, err := admin.CreateAccount(ctx, "test", "test")
		if err != nil {
			return err
		}
		made.account = a.ID.Text("acct")
		if err := importCatalog(ctx, pool, testCatalog, "p"); err != nil {
			return err
		}
		for _, rate := range rates {
			if made.keys[rate], err = createKey(ctx, admin, a.ID, rate); err != nil {
				return err
			}
		}
		return nil
	})
	return made
}

func newKey(t *testing.T, databaseURL, account string, rate int) (key madeKey) {
	t.Helper()
	asOperator(t, databaseURL, func(ctx context.Context, _ *pgxpool.Pool, admin *auth.Admin) error {
		id, err := store.ParseID("acct", account)
		if err != nil {
			return err
		}
		key, err = createKey(ctx, admin, id, rate)
		return err
	})
	return key
}

func createKey(ctx context.Context, admin *auth.Admin, account store.ID, rate int) (madeKey, error) {
	c, err := admin.CreateKey(ctx, account, auth.Terms{Name: new("test"), Scopes: auth.Scopes, RateLimit: &rate})
	return madeKey{c.ID.Text("cred"), c.Key}, err
}

type madeWorker struct{ ID, Token string }

func newWorker(t *testing.T, databaseURL string) (w madeWorker) {
	t.Helper()
	asOperator(t, databaseURL, func(ctx context.Context, _ *pgxpool.Pool, admin *auth.Admin) error {
		worker, token, err := admin.CreateWorker(ctx, "test", nil)
		w = madeWorker{worker.ID.Text("wrk"), token}
		return err
	})
	return w
}

// importCatalog imports a file and records that all dependencies of the providers are met.
func importCatalog(ctx context.Context, pool *pgxpool.Pool, file string, providers ...string) error {
	admin := &catalog.Admin{Pool: pool, Actor: "test"}
	if _, err := admin.Import(ctx, strings.NewReader(file), nil); err != nil {
		return err
	}
	for _, p := range providers {
		for _, d := range catalog.Dependencies {
			if err := admin.SetDependency(ctx, p, d, true, "test"); err != nil {
				return err
			}
		}
	}
	return nil
}

// asOperator changes the database as commands of aiv do, over one connection: a process for each change would take far
// longer.
func asOperator(t testing.TB, databaseURL string, change func(context.Context, *pgxpool.Pool, *auth.Admin) error) {
	t.Helper()
	pool, err := store.Open(t.Context(), databaseURL, 1)
	must(t, err)
	defer pool.Close()
	must(t, change(t.Context(), pool, &auth.Admin{Pool: pool, Actor: "test"}))
}

const testCatalog = `{"kind":"provider","code":"p","name":"P"}
{"kind":"model","id":"m","name":"M","provider":"p","provider_model":"m","status":"active","measurement_types":["grounded"],"countries":null,"languages":null,"grounded_search":true}
{"kind":"question","id":"q1","account_id":null,"text":"?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
{"kind":"question","id":"q2","account_id":null,"text":"?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
`

// testRun is a run of six jobs.
const testRun = `{"path":"/v1/runs","method":"POST","body":{"model_ids":["m"],"question_ids":["q1","q2"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}}`
