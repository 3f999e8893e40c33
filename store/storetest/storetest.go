// Package storetest gives tests a PostgreSQL: one server for each test process,
// one database for each test. A package whose tests use it has
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
//
// The servers start from a copy of a migrated data folder, see [Archive], and
// the databases are copies of its database.
//
// On Linux no server outlives the test process, even one that panics or is
// killed. The next test process removes the folder of such a server.
package storetest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/private"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Main runs the tests of a package and exits. The server is started by the
// first test that needs it. Parallel tests are four times as many as
// processors, unless -parallel says otherwise: they wait for servers most of
// the time. More than eight could use up the server's connections.
func Main(m interface{ Run() int }) {
	private.RunSupervisorIfRequested() // otherwise the supervisor would run the tests
	if err := flag.Set("test.parallel", strconv.Itoa(min(8, 4*runtime.GOMAXPROCS(0)))); err != nil {
		panic(err) // not in a test
	}
	syscall.Umask(0o022) // tests look at the permissions of what they make
	parseFlags()
	ready.Store(true)
	code := m.Run()
	stopServer()
	removeDistributed()
	removeTemporary()
	os.Exit(code)
}

// New returns a pool of plain sessions for a new migrated database; see Open.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t), store.Open, 8)
}

// Hot is New for hot sessions, as statements have that requests wait for.
func Hot(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t), store.OpenHot, 8)
}

// URL returns the URL of a new migrated database.
func URL(t testing.TB) string {
	t.Helper()
	if OnCitus() {
		return createDistributed(t)
	}
	return create(t, template)
}

// Plain returns a pool for a new migrated database that is never distributed: for tests of what is the same on a
// cluster, and which Citus reports otherwise.
func Plain(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, create(t, template), store.Open, 8)
}

// Empty returns the URL of a new database without tables.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// Open returns a pool that is closed when the test ends. Unless the URL has a lock_timeout or a statement_timeout, its
// sessions wait for locks for longer than a test holds one on a slow machine, and statements may take longer than it is
// paused.
func Open(t testing.TB, url string, open func(context.Context, string, int32) (*pgxpool.Pool, error), conns int32) *pgxpool.Pool {
	t.Helper()
	if !strings.Contains(url, "&lock_timeout=") { // of a repeated setting, pgx takes the last
		url += "&lock_timeout=1min"
	}
	if !strings.Contains(url, "&statement_timeout=") {
		url += patientStatements
	}
	pool, err := open(t.Context(), url, conns)
	Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// NewRole creates a role that may log in, whose name no other test uses, as roles belong to the whole server. It also
// returns the name quoted for SQL.
func NewRole(t testing.TB, pool *pgxpool.Pool, suffix string) (name, quoted string) {
	t.Helper()
	Must(t, pool.QueryRow(t.Context(), `SELECT current_database() || $1`, suffix).Scan(&name))
	quoted = pgx.Identifier{name}.Sanitize()
	Exec(t, pool, "CREATE ROLE "+quoted+" LOGIN") // as Citus connects to other servers as the role
	return name, quoted
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ignore returns the error of a call whose result does not matter.
func Ignore(_ any, err error) error { return err }

// Equal reports a difference between two values, which what describes.
func Equal(t testing.TB, want, got any, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

// Exec executes statements, one after the other.
func Exec(t testing.TB, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// Begin returns a transaction that has executed a statement. It is rolled back when the test ends.
func Begin(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	Must(t, err)
	// The context of the test is done by then.
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), sql, args...)
	Must(t, err)
	return tx
}

// databases numbers the databases of tests; see create.
var databases atomic.Int64

// create copies a template and returns the URL of the copy, so the cost of a database does not depend on the number of
// migrations.
func create(t testing.TB, template string) string {
	t.Helper()
	a, err := server()
	Must(t, err)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	url, err := a.create(t.Context(), name, template)
	if err != nil {
		t.Fatalf("create the test's database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := a.drop(ctx, name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return url + patient
}

// execSQL executes a statement over a new connection.
func execSQL(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// patient is the part of a URL for sessions of a slow machine: one may begin late, and pause between the statements of
// a transaction. The programs of PostgreSQL accept it too.
const patient = "&connect_timeout=60&options=-caiv.max_idle_with_locks%3D1min"

// patientStatements is the part of a URL for sessions whose statements a pause of the machine does not end.
const patientStatements = "&statement_timeout=2min"

// named returns the URL of another database of the same server.
func named(admin, name string) string {
	u, err := url.Parse(admin)
	if err != nil {
		panic(err) // store made it
	}
	u.Path = "/" + name
	return u.String()
}

// nameOf returns the name of the database at a URL that named returned.
func nameOf(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		panic(err) // see named
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Patience bounds the time that tests wait for what must happen. It is much longer than that takes on a slow and busy
// machine.
const Patience = 2 * time.Minute

// Eventually polls until a condition holds. The test fails if it does not within Patience.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not so after %v: %s", Patience, what)
		case <-tick.C:
		}
	}
}

// Main parses the flag, so that every test process that may run fault tests has it.
var faults = flag.String("faults", "short", "run the tests named Fault for `LONG`: short (seconds) or long (minutes)")

// Long reports whether the fault tests are to run for minutes.
func Long() bool { return *faults == "long" }

// parseFlags parses the flags, and ends the program if -faults has another value.
func parseFlags() {
	flag.Parse()
	if *faults != "short" && *faults != "long" {
		fmt.Fprintf(os.Stderr, "-faults must be short or long, not %q\n", *faults)
		os.Exit(2)
	}
}
