package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"aiv/store"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Each test process has one server, started when first used. It is package-level because all tests of a process share
// it.
var (
	ready   atomic.Bool // Main runs the tests
	running atomic.Pointer[Cluster]
	server  = sync.OnceValues(startServer)
)

// An admin creates and drops databases. Its connections are kept, as a new one takes longer than to create a database.
type admin struct {
	url  string
	pool *pgxpool.Pool
	copy string // option of CREATE DATABASE
}

// template is the migrated database of the archive, which tests copy.
const template = "aiv"

// startServer starts the server of this process from the archive. It is fast and not durable: tests end with it.
func startServer() (*admin, error) {
	if !ready.Load() {
		return nil, errors.New("no TestMain of this package calls storetest.Main")
	}
	c, err := makeCluster([]string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_keep_size=0",
		"shared_buffers=64MB", "max_connections=100", "timezone=UTC"})
	if err != nil {
		return nil, err
	}
	// It is stored before it starts, so that stopServer removes its files after any failure.
	running.Store(c)
	if err := Unpack(c.Data()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	a := &admin{url: named(c.URL(), "postgres")} // PostgreSQL copies only a database without connections
	if a.pool, err = store.Open(ctx, a.url+patientStatements, 2); err != nil {
		return nil, err
	}
	// Copying the files of a template takes half the time of writing its pages to the log. PostgreSQL 14 always copies.
	err = a.pool.QueryRow(ctx, `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY FILE_COPY' ELSE '' END`).Scan(&a.copy)
	return a, err
}

// create creates a database and returns its URL.
func (a *admin) create(ctx context.Context, name, template string) (url string, err error) {
	_, err = a.pool.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+a.copy)
	return named(a.url, name), err
}

// drop drops a database. It ends sessions that the test did not close.
func (a *admin) drop(ctx context.Context, name string) error {
	_, err := a.pool.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	return err
}

// stopServer ends the server, if a test has started one, and removes its files.
func stopServer() {
	if c := running.Load(); c != nil {
		c.Kill()
		c.remove()
	}
}
