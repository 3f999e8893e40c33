package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/schema"

	"github.com/jackc/pgx/v5"
)

var citus = flag.String("citus", "", "run the tests on databases distributed over the Citus cluster of the coordinator at this `URL`")

// OnCitus reports whether the databases of New and URL are distributed by Citus.
func OnCitus() bool { return *citus != "" }

// citusShards is the number of shards of each table. The default of Citus would make the template take longer.
const citusShards = 4

// A distributedTemplate is a database on each server of the cluster, which tests copy: to distribute the tables takes
// ten times as long as to copy them. The rows of Citus about a cluster name no database.
type distributedTemplate struct {
	servers []string // URLs, the coordinator's first
	name    string
}

// distributed is package-level because all tests of a process share it.
var distributed = sync.OnceValues(makeDistributed)

// madeDistributed is the template, if it was made.
var madeDistributed atomic.Pointer[distributedTemplate]

// makeDistributed creates the template on the servers of the database that the flag names.
func makeDistributed() (*distributedTemplate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	d, err := createEmpty(ctx, distributedName("template"))
	// It is stored also with an error, so that removeDistributed drops what was created.
	madeDistributed.Store(d)
	if err != nil {
		return nil, err
	}
	coordinator := named(d.servers[0], d.name)
	// The program does it, because it has the list of tables, which this package must not import.
	migrate := exec.CommandContext(ctx, "go", "run", "aiv/cmd/aiv", "migrate", "-distribute", "-database-url", coordinator)
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("aiv migrate -distribute: %w\n%s", err, out)
	}
	// Only a database without sessions can be copied. Citus itself has sessions.
	return d, errors.Join(
		d.everywhere(ctx, "ALTER DATABASE "+d.name+" ALLOW_CONNECTIONS false"),
		d.everywhere(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+d.name+"'"))
}

// createEmpty creates a database without tables on each server of the cluster, and makes them a cluster. It returns
// what it has created also with an error; nil: nothing.
func createEmpty(ctx context.Context, name string) (*distributedTemplate, error) {
	conn, err := pgx.Connect(ctx, *citus)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // and release the lock
	// Adding a node alters the roles of its server, which all databases share: two test processes must not do it at
	// once.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('storetest'))"); err != nil {
		return nil, err
	}
	servers, addNodes, err := readServers(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("read the servers of the cluster: %w", err)
	}
	d := &distributedTemplate{servers, name}
	if err := d.everywhere(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return d, err
	}
	for _, server := range servers {
		if err := execSQL(ctx, named(server, name), "CREATE EXTENSION citus"); err != nil {
			return d, err
		}
	}
	for _, sql := range append(addNodes, fmt.Sprintf("ALTER DATABASE %s SET citus.shard_count = %d", name, citusShards)) {
		if err := execSQL(ctx, named(servers[0], name), sql); err != nil {
			return d, fmt.Errorf("%s: %w", sql, err)
		}
	}
	return d, nil
}

// EmptyOnCitus creates a database without tables on the cluster, and returns the coordinator's URL.
func EmptyOnCitus(t testing.TB) string {
	t.Helper()
	name := distributedName(databases.Add(1))
	d, err := createEmpty(t.Context(), name)
	if d != nil {
		t.Cleanup(func() { Must(t, d.drop(name)) })
	}
	Must(t, err)
	return named(d.servers[0], name)
}

// distributedName returns a name that no other test process uses on the cluster.
func distributedName(what any) string { return fmt.Sprintf("test_%d_%v", os.Getpid(), what) }

// everywhere runs a statement on each server.
func (d *distributedTemplate) everywhere(ctx context.Context, sql string) error {
	failed := make([]error, len(d.servers))
	var wg sync.WaitGroup
	for i, server := range d.servers {
		wg.Go(func() {
			if err := execSQL(ctx, server, sql); err != nil {
				failed[i] = fmt.Errorf("%s: %w", sql, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// createDistributed creates a distributed database, and returns the coordinator's URL.
func createDistributed(t testing.TB) string {
	t.Helper()
	d, err := distributed()
	Must(t, err)
	name := distributedName(databases.Add(1))
	t.Cleanup(func() { Must(t, d.drop(name)) })
	Must(t, d.everywhere(t.Context(), "CREATE DATABASE "+name+" TEMPLATE "+d.name))
	coordinator := named(d.servers[0], name)
	pool := Open(t, coordinator, store.Open, 1)
	defer pool.Close()
	_, err = schema.Distribute(t.Context(), pool, nil) // settings of a database are not copied
	Must(t, err)
	return coordinator
}

// readServers returns the URLs of a cluster's servers, the coordinator's first, and the statements that make the same
// cluster of the servers of another database.
func readServers(ctx context.Context, coordinator *pgx.Conn) (urls, addNodes []string, err error) {
	config := coordinator.Config()
	rows, err := coordinator.Query(ctx, `SELECT nodename, nodeport, groupid FROM pg_dist_node ORDER BY groupid`)
	if err != nil {
		return nil, nil, err
	}
	var host string
	var port, group int
	_, err = pgx.ForEachRow(rows, []any{&host, &port, &group}, func() error {
		add := "citus_add_node"
		// Citus gives the group 0 to the coordinator.
		if group == 0 {
			add = "citus_set_coordinator_host"
		}
		addNodes = append(addNodes, fmt.Sprintf("SELECT %s('%s', %d)", add, host, port))
		server := url.URL{Scheme: "postgres", Path: "/" + config.Database,
			RawQuery: url.Values{"host": {host}, "port": {fmt.Sprint(port)}, "user": {config.User}, "sslmode": {"disable"}}.Encode()}
		urls = append(urls, server.String())
		return nil
	})
	return urls, addNodes, err
}

// drop drops a test's database of all servers. A transaction that was prepared on a worker when the test ended keeps the
// database in use until the coordinator has ended it.
func (d *distributedTemplate) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	recovered := execSQL(ctx, named(d.servers[0], name), "SELECT recover_prepared_transactions()")
	return errors.Join(recovered, d.everywhere(ctx, dropDatabase(name)))
}

// dropDatabase returns the statement that drops a database and ends its sessions.
func dropDatabase(name string) string { return "DROP DATABASE IF EXISTS " + name + " WITH (FORCE)" }

// removeDistributed drops the template, which allows no connections.
func removeDistributed() {
	d := madeDistributed.Load()
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := d.everywhere(ctx, dropDatabase(d.name)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
