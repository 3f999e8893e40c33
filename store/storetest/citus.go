package storetest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"aiv/store"

	"github.com/jackc/pgx/v5"
)

var citus = flag.String("citus", "", "run the tests on databases distributed over the Citus cluster of the coordinator at this `URL`")

// OnCitus reports whether the databases of New and URL are distributed by Citus.
func OnCitus() bool { return *citus != "" }

// citusShards is the number of shards of each table. The default of Citus would make each database take several seconds.
const citusShards = 4

// creating serializes the creation of distributed databases, during which Citus may fail to connect its servers.
var creating sync.Mutex

// createDistributed creates a database on each server of the cluster, distributes its tables, and returns the coordinator's URL.
// The servers are those of the database that the flag names.
func createDistributed(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1)) // unlike those of other test processes on the cluster
	servers, addNodes, err := readServers(t.Context(), *citus)
	if err != nil {
		t.Fatalf("read the servers of the cluster: %v", err)
	}
	t.Cleanup(func() { dropDistributed(t, servers, name) })
	creating.Lock()
	defer creating.Unlock()
	for _, server := range servers {
		for _, step := range []struct{ url, sql string }{
			{server, "CREATE DATABASE " + name + " TEMPLATE template0"},
			{named(server, name), "CREATE EXTENSION citus"},
		} {
			if err := execSQL(t.Context(), step.url, step.sql); err != nil {
				t.Fatalf("%s: %v", step.sql, err)
			}
		}
	}
	coordinator := named(servers[0], name)
	for _, sql := range append(addNodes, fmt.Sprintf("ALTER DATABASE %s SET citus.shard_count = %d", name, citusShards)) {
		if err := execSQL(t.Context(), coordinator, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	pool, err := store.Open(t.Context(), coordinator, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err = store.Migrate(t.Context(), pool); err == nil {
		_, err = store.Distribute(t.Context(), pool)
	}
	if err != nil {
		t.Fatal(err)
	}
	return coordinator
}

// readServers returns the URLs of a cluster's servers, the coordinator's first, and the statements that make the same cluster
// of the servers of another database.
func readServers(ctx context.Context, coordinator string) (urls, addNodes []string, err error) {
	u, err := url.Parse(coordinator)
	if err != nil {
		return nil, nil, err
	}
	conn, err := pgx.Connect(ctx, coordinator)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `SELECT nodename, nodeport, groupid FROM pg_dist_node ORDER BY groupid`)
	if err != nil {
		return nil, nil, err
	}
	var host string
	var port, group int
	_, err = pgx.ForEachRow(rows, []any{&host, &port, &group}, func() error {
		add := "citus_add_node"
		if group == 0 {
			add = "citus_set_coordinator_host"
		}
		addNodes = append(addNodes, fmt.Sprintf("SELECT %s('%s', %d)", add, host, port))
		server := url.URL{Scheme: "postgres", Path: u.Path,
			RawQuery: url.Values{"host": {host}, "port": {fmt.Sprint(port)}, "user": {u.User.Username()}, "sslmode": {"disable"}}.Encode()}
		urls = append(urls, server.String())
		return nil
	})
	return urls, addNodes, err
}

// dropDistributed drops a database of all servers. A transaction that was prepared on a worker when the test ended keeps the
// database in use until the coordinator has ended it.
func dropDistributed(t testing.TB, servers []string, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := execSQL(ctx, named(servers[0], name), "SELECT recover_prepared_transactions()"); err != nil {
		t.Errorf("end the prepared transactions of %s: %v", name, err)
	}
	for _, server := range servers {
		if err := execSQL(ctx, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	}
}
