package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// migrateLock is the advisory lock of whoever migrates: "aiv migr" in ASCII.
const migrateLock int64 = 0x616976206d696772

// Migrate applies the migrations that the database lacks and returns them. Any
// number of processes may call it at once: one applies, the others wait for it
// and find nothing to do. It refuses a database that is newer than this binary
// with a [*NewerError], one whose history differs with a [*ChangedError].
func Migrate(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	return migrate(ctx, pool, embedded)
}

func migrate(ctx context.Context, pool *pgxpool.Pool, files fs.FS) ([]Migration, error) {
	all, err := loadMigrations(files)
	if err != nil {
		return nil, err
	}

	// A connection of its own: the limits of the pool's sessions suit requests
	// and would cut a wait for the lock or the rewrite of a large table. The
	// lock is the session's, and ends with it however this function returns.
	config := pool.Config().ConnConfig
	for _, limit := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
		config.RuntimeParams[limit] = "0"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrateLock); err != nil {
		return nil, fmt.Errorf("wait for the migration lock: %w", err)
	}
	if _, err := conn.Exec(ctx, createSchemaMigrations); err != nil {
		return nil, fmt.Errorf("create schema_migrations: %w", err)
	}
	// Read under the lock, so that it is what the process before left.
	status, err := readStatus(ctx, conn, all)
	if err != nil {
		return nil, err
	}
	if err := status.Err(); err != nil {
		if _, pending := errors.AsType[*PendingError](err); !pending {
			return nil, err
		}
	}
	var applied []Migration
	for _, m := range status.Pending {
		if err := apply(ctx, conn, &m); err != nil {
			return applied, err
		}
		applied = append(applied, m)
	}
	return applied, nil
}

// apply runs one migration and records it in the same transaction: it is
// either there and recorded, or neither.
func apply(ctx context.Context, conn *pgx.Conn, m *Migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Without arguments pgx sends the text as it is, all statements of it.
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return fmt.Errorf("apply migration %s%s: %w", m, line(m.sql, err), err)
		}
		err := tx.QueryRow(ctx, insertSchemaMigration, m.Version, m.Name, m.checksum).Scan(&m.AppliedAt)
		if err != nil {
			return fmt.Errorf("record migration %s: %w", m, err)
		}
		return nil
	})
}

// line tells where in a migration PostgreSQL found fault, when it says so.
func line(sql string, err error) string {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || fault.Position == 0 {
		return ""
	}
	before := []rune(sql)
	before = before[:min(int(fault.Position), len(before))]
	return fmt.Sprintf(", line %d", 1+strings.Count(string(before), "\n"))
}

const createSchemaMigrations = `
CREATE TABLE IF NOT EXISTS schema_migrations (
	version    int         PRIMARY KEY,
	name       text        NOT NULL,
	checksum   bytea       NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)`

const insertSchemaMigration = `
INSERT INTO schema_migrations (version, name, checksum)
VALUES ($1, $2, $3)
RETURNING applied_at`
