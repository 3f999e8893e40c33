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
// round trip. If f returns an error in the transaction, the pool closes the connection, which ends the transaction.
//
// f is called again after errChanged, and after a deadlock, which occurs on Citus only: there, rows on several servers are locked in
// any order. A wait in a deadlock may end by lock_timeout before Citus finds the deadlock, so f is called once more after that, too.
// It is called until it succeeds or ctx is done, ever more seldom.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) error {
	onCitus, timedOut := false, false
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
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
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// errChanged means that a statement on Citus waited for a transaction whose changes were invisible when their rows were read. They
// are visible to the next transaction.
var errChanged = errors.New("another transaction has changed the rows since they were read")

// batchLock queues a statement that locks the rows that the next one finds by ctid; see rowOf. The statements on Citus find theirs by
// key.
func batchLock(b *pgx.Batch, conn *pgx.Conn, sql string, args ...any) {
	if !store.IsCitus(conn) {
		b.Queue(sql, args...)
	}
}
