// Package schema makes the tables of the program, and checks that a service can use them: migrations, the privileges of
// other roles, and the distribution of the tables over a Citus cluster.
//
// It owns the table schema_migrations; every other table belongs to the package that writes it. Package cmd/aiv calls
// it.
//
// A change of the schema is a new file in migrations, and the same change of store/schema.sql, which a test compares
// with the migrations. The oldest-compatible of the file is the previous file's, unless binaries without the change
// would fail or do harm. A new table is also a line in the [Capability] of the package that owns it. What Citus refuses
// about distributed tables has another form in distributedForms.
package schema

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// migrateLock is the advisory lock of a migrating session: "aiv migr" in ASCII.
const migrateLock int64 = 0x616976206d696772

// Config configures Migrate.
type Config struct {
	// Report receives one line for each wait for a lock that timed out; nil discards it.
	Report func(line string)

	// Set by tests. The zero values are the defaults.
	lockTimeout time.Duration // bounds each wait for a lock on a table, because writers queue behind the wait; default: 2 s
	attempts    int           // per migration, after lock timeouts; default: 30
	pause       time.Duration // between attempts, in which queued writers proceed; default: 1 s
	files       fs.FS
}

// Migrate applies the migrations that the database lacks and returns them, with the default [Config].
func Migrate(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	return Config{}.Migrate(ctx, pool)
}

// Migrate applies the migrations that the database lacks and returns them. Any number of processes may call it at once:
// one applies, the others wait for it and find nothing to do. It refuses a database whose newer migrations are not
// compatible with this binary with a [*NewerError], and one whose history differs with a [*ChangedError].
func (c Config) Migrate(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	c.setDefaults()
	all, err := loadMigrations(c.files)
	if err != nil {
		return nil, err
	}

	conn, err := lockMigrations(ctx, pool)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, createSchemaMigrations); err != nil {
		return nil, fmt.Errorf("create schema_migrations: %w", err)
	}
	// Read under the lock, after the changes of the process that held it before.
	status, err := readStatus(ctx, conn, all)
	if err != nil {
		return nil, err
	}
	if err := status.Err(); err != nil {
		// Pending migrations are what this call applies. Any other error ends it.
		if _, pending := errors.AsType[*PendingError](err); !pending {
			return nil, err
		}
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(`SET lock_timeout = %d`, c.lockTimeout.Milliseconds())); err != nil {
		return nil, fmt.Errorf("set lock_timeout: %w", err)
	}
	var applied []Migration
	for _, m := range status.Pending {
		if err := c.applyWithRetries(ctx, pool, conn, &m); err != nil {
			return applied, err
		}
		applied = append(applied, m)
	}
	return applied, nil
}

// lockMigrations opens a connection that has the migration lock, which ends with the connection. It is not the pool's,
// because the pool's timeouts suit requests and would end the wait for the lock or the rewrite of a large table. Nor
// may the pool's sessions be hot: a migration may join and sort all rows of a table.
func lockMigrations(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	// Config returns a copy, so the pool keeps its settings.
	config := pool.Config().ConnConfig
	store.SetPlain(config)
	for _, limit := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[limit] = "0"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	if err := errors.Join(store.CheckEncoding(conn), checkWritable(conn)); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrateLock); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("wait for the migration lock: %w", err)
	}
	return conn, nil
}

func (c *Config) setDefaults() {
	c.lockTimeout = cmp.Or(c.lockTimeout, 2*time.Second)
	c.attempts = cmp.Or(c.attempts, 30)
	c.pause = cmp.Or(c.pause, time.Second)
	if c.Report == nil {
		c.Report = func(string) {}
	}
	if c.files == nil {
		c.files = embedded
	}
}

// applyWithRetries applies one migration, again when a lock that it needs is not free in time.
func (c *Config) applyWithRetries(ctx context.Context, pool *pgxpool.Pool, conn *pgx.Conn, m *Migration) error {
	for attempt := 1; ; attempt++ {
		// The blockers are watched while the migration waits. After the timeout, nothing shows which session held the
		// lock.
		stop := c.watchBlockers(ctx, pool, conn.PgConn().PID())
		err := apply(ctx, conn, m)
		// stop must be called in any case, as it ends a goroutine.
		blockers := stop()
		if !store.IsLockTimeout(err) {
			return err
		}
		line := fmt.Sprintf("migration %s waits for a lock; held by %s", m, cmp.Or(blockers, "an unknown session"))
		if attempt == c.attempts {
			return fmt.Errorf("%s; end that session and run `aiv migrate` again: %w", line, err)
		}
		c.Report(line)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.pause):
		}
	}
}

// watchBlockers polls which sessions block a session, several times within lockTimeout. stop returns the last ones that
// it saw.
func (c *Config) watchBlockers(ctx context.Context, pool *pgxpool.Pool, pid uint32) (stop func() (last string)) {
	// found has no buffer: stop receives what the goroutine sends as its last action.
	done, found := make(chan struct{}), make(chan string)
	go func() {
		last := ""
		tick := time.NewTicker(c.lockTimeout / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				last = cmp.Or(readBlockers(ctx, pool, pid), last)
			case <-done:
				found <- last
				return
			}
		}
	}()
	return func() string { close(done); return <-found }
}

// apply runs one migration and records it, in one transaction.
func apply(ctx context.Context, conn *pgx.Conn, m *Migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for begin, end := range statements(m.sql) {
			if err := execStatement(ctx, tx, m.sql[begin:end]); err != nil {
				return fmt.Errorf("apply migration %s%s: %w", m, line(m.sql, begin, err), err)
			}
		}
		err := tx.QueryRow(ctx, insertSchemaMigration, m.Version, m.Name, m.checksum, m.OldestCompatible).Scan(&m.AppliedAt)
		if err != nil {
			return fmt.Errorf("record migration %s: %w", m, err)
		}
		return nil
	})
}

// readBlockers describes the sessions that hold the locks for which a session waits. The description is empty if it
// waits for none, and if they cannot be read.
func readBlockers(ctx context.Context, pool *pgxpool.Pool, pid uint32) string {
	blockers, err := store.Collect(ctx, pool, pgx.RowTo[string], selectBlockers, int32(pid))
	if err != nil {
		return ""
	}
	return strings.Join(blockers, " and ")
}

// line returns the line of a migration at which PostgreSQL found an error in the statement that begins at an offset, as
// far as it is known.
func line(sql string, begin int, err error) string {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || fault.Position == 0 {
		return ""
	}
	statement := []rune(sql[begin:])
	// PostgreSQL counts positions in characters from 1.
	statement = statement[:min(int(fault.Position), len(statement))]
	return fmt.Sprintf(", line %d", 1+strings.Count(sql[:begin]+string(statement), "\n"))
}

// ID identifies the schema that Migrate makes: it is a hash of the statements.
func ID() (string, error) {
	all, err := loadMigrations(embedded)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	// A migrated database also depends on these statements.
	for _, text := range []string{createSchemaMigrations, insertSchemaMigration} {
		fmt.Fprintf(hash, "%q", text)
	}
	for _, m := range all {
		fmt.Fprintf(hash, "%s %x", m, m.checksum)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

const createSchemaMigrations = `
CREATE TABLE IF NOT EXISTS schema_migrations (
	version           int         PRIMARY KEY,
	name              text        NOT NULL,
	checksum          bytea       NOT NULL,
	applied_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
	oldest_compatible int -- the oldest schema version whose binaries run on this one; NULL: this version
)`

const insertSchemaMigration = `
INSERT INTO schema_migrations (version, name, checksum, oldest_compatible)
VALUES ($1, $2, $3, $4)
RETURNING applied_at`

// selectBlockers leaves out what is NULL, as the state and the transaction of another role's session are without
// pg_read_all_stats.
const selectBlockers = `
SELECT format('process %s (%s%s)', pid,
	concat_ws(', ', COALESCE(NULLIF(application_name, ''), usename), state, 'transaction open for ' || extract(epoch FROM now() - xact_start)::int || ' s'),
	CASE WHEN query = '<insufficient privilege>' THEN format('; GRANT pg_read_all_stats TO %I shows more', current_user) END)
FROM pg_stat_activity
WHERE pid = ANY (pg_blocking_pids($1))
ORDER BY xact_start`
