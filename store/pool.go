package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessionSettings are asked for when a connection starts, so that they cost no
// round trip. What the URL sets itself is left alone.
var sessionSettings = []struct{ name, value string }{
	// Tells the connections apart in pg_stat_activity.
	{"application_name", "aiv"},
	// Months of usage are cut in UTC, whatever the server's zone is.
	{"TimeZone", "UTC"},
	// Set-returning functions are planned for far more rows than they return,
	// which makes short statements look worth compiling: at each execution.
	{"jit", "off"},
	// Statements are prepared once per connection, often while the tables are
	// still empty. A plan per execution would cost more than it finds.
	{"plan_cache_mode", "force_generic_plan"},
	// Every statement of the program finds its rows by an index that yields them in
	// the order wanted. A plan that sorts or scans instead looks cheap where the
	// statistics are those of a young table or of an average account, and stays.
	{"enable_seqscan", "off"},
	{"enable_bitmapscan", "off"},
	{"enable_sort", "off"},
	{"enable_incremental_sort", "off"},
	// A statement that waited for a row goes on with what the row has become: on
	// that rests the exactness of counts and keys.
	{"default_transaction_isolation", "read committed"},
	// A forgotten transaction or a migration must not stack up requests.
	{"lock_timeout", "5s"},
	// Beyond any deadline of a request: what runs on belongs to nobody.
	{"statement_timeout", "30s"},
	// A process that hangs inside a transaction must not hold its locks.
	{"idle_in_transaction_session_timeout", "60s"},
	// Nor must a machine that has gone while it was sent its rows.
	{"tcp_user_timeout", "30s"},
}

const (
	// A host that drops packets must not use up a request's whole deadline,
	// least of all when the URL names a second host.
	connectTimeout = 5 * time.Second

	// Connections are renewed so that plans made on young tables and sessions
	// on a former primary do not stay; the jitter keeps them from all being
	// renewed at once.
	connLifetime       = 30 * time.Minute
	connLifetimeJitter = 5 * time.Minute
)

// Open makes a pool for the database at url. It does not connect, hence
// succeeds when the database is not reachable yet. No error that it returns
// contains a part of the URL, which holds a password.
func Open(ctx context.Context, url string, maxConns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", parseFault(err))
	}
	for _, setting := range sessionSettings {
		if !isSet(config.ConnConfig.RuntimeParams, setting.name) {
			config.ConnConfig.RuntimeParams[setting.name] = setting.value
		}
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.Tracer = roundTripTracer{}
	config.MaxConns = maxConns
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetimeJitter

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

// IsLocal reports whether the pool's database is on this machine.
func IsLocal(pool *pgxpool.Pool) bool {
	config := pool.Config().ConnConfig
	hosts := []string{config.Host}
	for _, other := range config.Fallbacks {
		hosts = append(hosts, other.Host)
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		network, _ := pgconn.NetworkAddress(host, config.Port)
		return network != "unix" && host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

// Durable reports whether what the database has committed outlasts a crash, by the settings of the pool's sessions.
func Durable(ctx context.Context, pool *pgxpool.Pool) (durable bool, err error) {
	err = pool.QueryRow(ctx, `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on'`).Scan(&durable)
	return durable, err
}

// isSet reports whether the URL sets a parameter, by name in any case or as
// "-c name=value" in options. A parameter by name would win over options.
func isSet(params map[string]string, name string) bool {
	for key, value := range params {
		if strings.EqualFold(key, name) {
			return true
		}
		if key == "options" && strings.Contains(strings.ToLower(value), strings.ToLower(name)+"=") {
			return true
		}
	}
	return false
}

// parseFault says what is wrong with a URL in words of ours alone: pgx redacts
// its errors as well as it can, but where a URL does not parse, nobody knows
// which part of it is the password.
func parseFault(err error) error {
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
