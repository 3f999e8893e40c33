package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// inTransaction runs f, which begins a transaction with its first batch and ends it with its last, so that neither needs a
// round trip. After an error the transaction is rolled back.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, f func(*pgx.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // closes a connection that is still in a transaction
	if err := f(conn.Conn()); err != nil {
		if conn.Conn().PgConn().TxStatus() != 'I' && !conn.Conn().IsClosed() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
			defer cancel()
			err = errors.Join(err, rollback(ctx, conn.Conn()))
		}
		return err
	}
	return nil
}

// rollbackTimeout bounds a rollback. PostgreSQL rolls back by itself when the connection is closed.
const rollbackTimeout = 2 * time.Second

func rollback(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "ROLLBACK")
	return err
}

// A transaction lets other packages add statements to the transaction that a connection is in.
type transaction struct {
	pgx.Tx // nil: these packages neither nest nor end the transaction
	conn   *pgx.Conn
}

func (t transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

func (t transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

func (t transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}

func (t transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, b)
}

func (t transaction) Conn() *pgx.Conn { return t.conn }
