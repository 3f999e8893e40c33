// Package store connects the program to PostgreSQL: connection pools and their session settings, identifiers, times,
// errors, and the queries for pages of lists.
//
// # Sessions
//
// The sessions of a pool are either hot or plain. They differ only in the settings of PostgreSQL's planner.
//
// Hot sessions are for the short statements that requests wait for: counting requests, creating and reading runs,
// lists, claims, settlements, deliveries. Such a statement reads a few rows by an index, however large the tables are.
// Its plan is made once for each session, perhaps when the tables were empty or by the statistics of an average
// account. So hot sessions keep one generic plan of each statement, and never sort, or scan a table. Some statements
// also lock their rows in the order that this gives. A statement that reads many rows is planned badly in a hot
// session: add no aggregates there.
//
// Plain sessions have the planner's defaults. They are for everything else: aggregates, the commands of operators,
// migrations, background tasks, and metrics of the process. Tasks that look for work of jobs, schedules and deliveries
// are an exception. They use hot sessions, because they must stay cheap before a table's first ANALYZE.
//
// [OpenHot] opens the pools of the services, and [Open] the pools of commands. The services open a plain pool beside
// the hot ones by [OpenPlain].
//
// It owns the tables shared_secrets and audit_log. Every package that has SQL calls it.
package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// Bounds the wait for a host that drops packets, so that the next host of the URL can be tried within a request's
	// deadline.
	connectTimeout = 5 * time.Second

	// Connections are renewed so that plans made on small tables and sessions on a former primary do not persist. The
	// jitter spreads the renewals.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Open makes a pool of plain sessions for the database at url. It does not connect, so it succeeds when the database
// cannot be reached. Its errors contain no part of the URL, which may contain a password.
func Open(ctx context.Context, url string, maxConns int32) (*pgxpool.Pool, error) {
	return open(ctx, url, maxConns, plain)
}

// OpenHot is Open for hot sessions.
func OpenHot(ctx context.Context, url string, maxConns int32) (*pgxpool.Pool, error) {
	return open(ctx, url, maxConns, hot)
}

func open(ctx context.Context, url string, maxConns int32, k kind) (*pgxpool.Pool, error) {
	config, err := parse(url, k)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	config.MaxConns = maxConns
	return newPool(ctx, config)
}

// unprepared executes a statement in one round trip instead of two. It is for statements that a process executes once.
const unprepared = pgx.QueryExecModeExec

func newPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// parse returns the configuration of a pool of a kind for the database at url.
func parse(url string, k kind) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, parseFault(err)
	}
	switch c := config.ConnConfig; c.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		// The types of arguments are not read from the database, so statements would fail one by one.
		return nil, errors.New("the database URL must not set default_query_exec_mode to exec or simple_protocol")
	case pgx.QueryExecModeCacheStatement:
		if c.StatementCacheCapacity <= 0 {
			return nil, errors.New("the database URL must not set statement_cache_capacity to 0")
		}
	}
	setParameters(config.ConnConfig.RuntimeParams, k)
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.DialFunc = dial
	config.ConnConfig.Tracer = roundTripTracer{}
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetimeJitter
	config.AfterConnect = new(planner).afterConnect
	return config, nil
}

// Connect opens the pool's first connection.
func Connect(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn.Release()
	return nil
}

// OpenAnother returns another pool for the database of pool, whose sessions have another value of one timeout. It has
// separate connections, so that the users of one pool cannot use up the connections of the other.
func OpenAnother(ctx context.Context, pool *pgxpool.Pool, maxConns int32, setting string, timeout time.Duration) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns = maxConns
	config.ConnConfig.RuntimeParams[setting] = milliseconds(timeout)
	return newPool(ctx, config)
}

// OpenPlain returns another pool for the database of pool, with plain sessions.
func OpenPlain(ctx context.Context, pool *pgxpool.Pool, maxConns int32) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns = maxConns
	SetPlain(config.ConnConfig)
	return newPool(ctx, config)
}

// milliseconds returns a duration as PostgreSQL reads it in a setting.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// Servers returns the name of the database at url, and its servers as HOST:PORT, where HOST may be the folder of a Unix
// socket.
func Servers(url string) (database string, servers []string, err error) {
	config, err := parse(url, plain)
	if err != nil {
		return "", nil, err
	}
	c := config.ConnConfig
	servers = []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, other := range c.Fallbacks { // a server that is tried with TLS and without is there twice
		if s := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port))); !slices.Contains(servers, s) {
			servers = append(servers, s)
		}
	}
	return c.Database, servers, nil
}

// IsLocal reports whether the pool's database is on this machine, whichever of its servers is used.
func IsLocal(pool *pgxpool.Pool) bool {
	local := func(host string) bool { return filepath.IsAbs(host) || IsLoopback(host) } // a path is a Unix socket's folder
	c := pool.Config().ConnConfig
	return local(c.Host) && !slices.ContainsFunc(c.Fallbacks, func(other *pgconn.FallbackConfig) bool { return !local(other.Host) })
}

// IsLoopback reports whether a host is localhost or a loopback address. It resolves no names.
func IsLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// Durable reports whether committed transactions survive a crash, by the settings of the pool's sessions.
func Durable(ctx context.Context, pool *pgxpool.Pool) (durable bool, err error) {
	err = pool.QueryRow(ctx, `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on'`, unprepared).Scan(&durable)
	return durable, err
}

// parseFault returns an error that contains fixed text only. pgx redacts passwords in its errors, but cannot where it
// is unknown which part of an invalid URL is the password.
func parseFault(err error) error {
	// These texts of pgx contain nothing of the URL.
	for _, known := range []string{
		"invalid port",
		"could not match",
		"invalid connect_timeout",
		"failed to configure TLS",
		"failed to read service",
		"unknown target_session_attrs value",
	} {
		if strings.Contains(err.Error(), known) {
			return fmt.Errorf("the database URL is not valid: %s", known)
		}
	}
	return errors.New("the database URL is not valid; its form is postgres://user:password@host:port/database")
}

// A connection outlives the machine at its other end by lostAfter. All connections of a pool then end at once. Otherwise
// each of them would fail a request, which waits for the connection until its deadline.
const lostAfter = 15 * time.Second

// dial connects to a server so that the connection ends if the server's machine stops without closing it.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		// A connection is lost after Idle and Count intervals, which add up to lostAfter.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lostAfter / 5, Interval: lostAfter / 5, Count: 4}, // whole seconds
		Control:         setUserTimeout,
	}
	return d.DialContext(ctx, network, address)
}
