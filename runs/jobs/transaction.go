package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// inTransaction runs f, which begins a transaction with its first batch and ends it with its last, so that neither needs a
// round trip. After an error the transaction is rolled back.
//
// f is called again after errChanged, and after a deadlock, which occurs on Citus only: there, rows on several servers are locked in
// any order. A wait in a deadlock may end by lock_timeout before Citus finds the deadlock, so f is called once more after that, too.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) error {
	onCitus, timedOut := false, false
	for {
		err := tryTransaction(ctx, pool, func(c *pgxpool.Conn) error {
			onCitus = store.IsCitus(c.Conn())
			return f(c)
		})
		switch {
		case errors.Is(err, errChanged) || store.IsDeadlock(err):
		case onCitus && !timedOut && store.IsLockTimeout(err):
			timedOut = true
		default:
			return err
		}
	}
}

// errChanged means that a statement on Citus waited for a transaction whose changes were invisible when their rows were read. They
// are visible to the next transaction.
var errChanged = errors.New("another transaction has changed the rows since they were read")

func tryTransaction(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // closes a connection that is still in a transaction
	if err := f(conn); err != nil {
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
