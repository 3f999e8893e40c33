package e2e

import (
	"strings"
	"testing"

	"aiv/auth"
	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type madeKey struct{ ID, Key string }

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return storetest.Open(t, url, store.Open, 4)
}

func dial(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	must(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// waitUntil waits until a query returns true.
func waitUntil(t *testing.T, url, question string) {
	t.Helper()
	conn := dial(t, url)
	defer conn.Close(t.Context())
	storetest.Eventually(t, question, func() (yes bool) {
		t.Helper()
		must(t, conn.QueryRow(t.Context(), question).Scan(&yes))
		return yes
	})
}

var number = storetest.Value[int]

// A madeCustomer is an account and its key, which has a high rate.
type madeCustomer struct {
	account string
	key     madeKey
}

// customer creates an account with a key, and a catalog with a model and two questions. When the test has ended, and
// its processes were killed, every invariant of the database must hold.
func customer(t *testing.T, databaseURL string) (account string, key madeKey) {
	t.Helper()
	t.Cleanup(func() { verify(t, databaseURL) })
	made := createCustomer(t, databaseURL)
	return made.account, made.key
}

// customers is package-level because all tests copy one database.
var customers storetest.Filled[madeCustomer]

// databaseOfCustomer returns a new database with a customer: a copy of one that is filled once.
func databaseOfCustomer(t *testing.T) (url string, pool *pgxpool.Pool, account string, key madeKey) {
	t.Helper()
	url, made := customers.Copy(t, createCustomer)
	t.Cleanup(func() { verify(t, url) })
	return url, open(t, url), made.account, made.key
}

func createCustomer(t testing.TB, databaseURL string) madeCustomer {
	t.Helper()
	admin := operator(t, databaseURL)
	defer admin.Pool.Close()
	must(t, admin.SetPlan(t.Context(), auth.Plan{Code: "test", Features: []string{"api_access"}}))
	a, err := admin.CreateAccount(t.Context(), "test", "test")
	must(t, err)
	importCatalog(t, admin.Pool, testCatalog, "p")
	account := a.ID.Text("acct")
	return madeCustomer{account, newKey(t, databaseURL, account, 1_000_000)}
}

func newKey(t testing.TB, databaseURL, account string, rate int) madeKey {
	t.Helper()
	admin := operator(t, databaseURL)
	defer admin.Pool.Close()
	id, err := store.ParseID("acct", account)
	must(t, err)
	c, err := admin.CreateKey(t.Context(), id, auth.Terms{Name: new("test"), Scopes: auth.Scopes, RateLimit: &rate})
	must(t, err)
	return madeKey{c.ID.Text("cred"), c.Key}
}

// newWorker creates a worker and returns its token.
func newWorker(t *testing.T, databaseURL string) string {
	t.Helper()
	admin := operator(t, databaseURL)
	defer admin.Pool.Close()
	_, token, err := admin.CreateWorker(t.Context(), "test", nil)
	must(t, err)
	return token
}

// importCatalog imports a file and records that all dependencies of the providers are met.
func importCatalog(t testing.TB, pool *pgxpool.Pool, file string, providers ...string) {
	t.Helper()
	admin := &catalog.Admin{Pool: pool, Actor: "test"}
	_, err := admin.Import(t.Context(), strings.NewReader(file), nil)
	must(t, err)
	for _, p := range providers {
		for _, d := range catalog.Dependencies {
			must(t, admin.SetDependency(t.Context(), p, d, true, "test"))
		}
	}
}

// operator changes the database as commands of aiv do, over one connection: a process for each change would take far
// longer. Its pool must be closed, as databaseOfCustomer copies a database without connections.
func operator(t testing.TB, databaseURL string) *auth.Admin {
	t.Helper()
	return &auth.Admin{Pool: storetest.Open(t, databaseURL, store.Open, 1), Actor: "test"}
}

const testCatalog = `{"kind":"provider","code":"p","name":"P"}
{"kind":"model","id":"m","name":"M","provider":"p","provider_model":"m","status":"active","measurement_types":["grounded"],"countries":null,"languages":null,"grounded_search":true}
{"kind":"question","id":"q1","account_id":null,"text":"?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
{"kind":"question","id":"q2","account_id":null,"text":"?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
`

// testRun is a run of six jobs.
const testRun = `{"path":"/v1/runs","method":"POST","body":{"model_ids":["m"],"question_ids":["q1","q2"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}}`
