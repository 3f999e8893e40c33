package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Querier runs queries: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A Tx executes statements in a transaction that another package begins and ends: a pgx.Tx, or a connection of a pool,
// if its statements begin and end the transaction.
type Tx interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Conn() *pgx.Conn
}

// maxTries bounds how often Repeat tries a transaction. In Step, locks that are held for longer than about 30 s are
// reported.
const maxTries = 15

// Step is Repeat for one transaction of an administrative command that changes many rows in small steps. A statement in
// it waits at most 2 s for a lock, so that requests never queue behind a step that waits.
func Step(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return Repeat(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, stepSettings); err != nil {
			return err
		}
		return f(tx)
	})
}

// Repeat runs f in a transaction of an administrative command. If a statement got no lock, or was the victim of a
// deadlock, the transaction is tried again; f must start over each time.
func Repeat(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, pool, f)
		if !IsLockTimeout(err) && !IsDeadlock(err) || try == maxTries {
			return err
		}
		time.Sleep(50*time.Millisecond + rand.N(100*time.Millisecond)) // the next try fails if ctx is done
	}
}

// ExecInSteps executes a statement that changes as many rows as its last argument, step, until it changes fewer. Each
// execution is a transaction. ExecInSteps returns how many rows were changed.
func ExecInSteps(ctx context.Context, pool *pgxpool.Pool, step int64, sql string, args ...any) (total int64, err error) {
	// step is the last argument, by which the statement must limit its rows.
	args = append(args, step)
	for n := step; n == step; total += n {
		tag, err := pool.Exec(ctx, sql, args...)
		if err != nil {
			return total, err
		}
		n = tag.RowsAffected()
	}
	return total, nil
}

// A step deletes at most one large run, for which the statement timeout of requests may be too short.
const stepSettings = `SELECT set_config('lock_timeout', '2s', true), set_config('statement_timeout', '10min', true)`

// LockKept locks the accounts that an import writes to. An erasure that begins later waits for the transaction, and
// deletes what it wrote. LockKept fails if one of the accounts has been erased since its lines were checked. It comes
// last, because on Citus it locks all accounts, and does not share its locks: two imports that did would deadlock there.
func LockKept(ctx context.Context, tx pgx.Tx, accounts []ID) error {
	kept, err := tx.Exec(ctx, lockKept, accounts)
	if err == nil && kept.RowsAffected() < int64(len(accounts)) {
		err = errors.New("an account of the file has been erased meanwhile")
	}
	return err
}

const lockKept = `SELECT FROM accounts WHERE id = ANY ($1) AND erased_at IS NULL ORDER BY id FOR NO KEY UPDATE`

// BoundIdle is an expression for the first SELECT of a transaction whose locks other accounts wait for. A process that
// stops inside the transaction loses its session, and so the locks, after 3 s, or after the time that the URL of the
// database sets as aiv.max_idle_with_locks.
const BoundIdle = `
set_config('idle_in_transaction_session_timeout', coalesce(current_setting('aiv.max_idle_with_locks', true), '3s'), true)`

// SetLockTimeout bounds each wait for a lock in a transaction by the time in $1.
const SetLockTimeout = `SELECT set_config('lock_timeout', $1, true)`

// ShortenLockTimeout shortens the session's lock_timeout for a transaction by the milliseconds in $1, to at least 100 ms.
// It leaves one that is off.
const ShortenLockTimeout = `
SELECT set_config('lock_timeout', GREATEST(setting::bigint - $1, 100)::text, true) FROM pg_settings WHERE name = 'lock_timeout' AND setting <> '0'`

// WithoutTimeouts runs f in a transaction without the timeouts of Open, which are meant for requests. An operator's
// import or report may run for long and wait for another import. f must not take locks that requests wait for, except
// in its last statements.
func WithoutTimeouts(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return beginWithoutTimeouts(ctx, pool, pgx.TxOptions{}, f)
}

// ReadWithoutTimeouts is WithoutTimeouts for a command that only reads. All statements of f see the same snapshot.
func ReadWithoutTimeouts(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return beginWithoutTimeouts(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

// beginWithoutTimeouts runs f in a transaction with options and without timeouts.
func beginWithoutTimeouts(ctx context.Context, pool *pgxpool.Pool, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, withoutTimeouts); err != nil {
			return err
		}
		return f(tx)
	})
}

// withoutTimeouts changes the settings until the end of the transaction.
const withoutTimeouts = `
SELECT set_config(name, value, true) FROM (VALUES
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_in_transaction_session_timeout', '0')) AS s (name, value)`

// Collect runs a query and collects its rows, each read by row.
func Collect[T any](ctx context.Context, db Querier, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// CollectOne is Collect for a query that returns one row. It returns [pgx.ErrNoRows] if there is none.
func CollectOne[T any](ctx context.Context, db Querier, row pgx.RowToFunc[T], sql string, args ...any) (one T, err error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return one, err
	}
	return pgx.CollectExactlyOneRow(rows, row)
}

// ReadOne is CollectOne for a T with one field for each column, in order. absent, unless it is nil, replaces the error of
// a missing row.
func ReadOne[T any](ctx context.Context, db Querier, absent error, sql string, args ...any) (*T, error) {
	one, err := CollectOne(ctx, db, pgx.RowToAddrOfStructByPos[T], sql, args...)
	if errors.Is(err, pgx.ErrNoRows) && absent != nil {
		return nil, absent
	}
	return one, err
}

// Snapshot calls f with a transaction that only reads, in a hot session or a plain one. All statements of f see the
// same snapshot, and are planned for what they read now: they may sort, hash and use bitmaps, but scan no table, which
// would cost more with the rows of other accounts. db is a pool, a connection, or the transaction of an outer call,
// which f then joins.
func Snapshot(ctx context.Context, db Querier, f func(pgx.Tx) error) error {
	// The outer call has set up the transaction.
	if tx, ok := db.(pgx.Tx); ok {
		return f(tx)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, db.(Beginner), options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, snapshotSettings); err != nil {
			return err
		}
		return f(tx)
	})
}

// snapshotSettings changes the settings until the end of the transaction.
const snapshotSettings = `
SELECT set_config(name, value, true) FROM (VALUES
  ('plan_cache_mode', 'force_custom_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'on'), ('enable_sort', 'on'),
  ('enable_incremental_sort', 'on')) AS s (name, value)`
