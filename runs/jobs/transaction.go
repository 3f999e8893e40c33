package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// inTransaction runs f, which begins a transaction with its first batch and ends it with its last, so that neither
// needs a round trip. If f returns an error in the transaction, the pool closes the connection, which ends the
// transaction.
//
// f is called again after errChanged, and after a deadlock, which occurs only on Citus, where rows on several servers
// are locked in any order. A wait in a deadlock may end by lock_timeout before Citus finds the deadlock, so f is also
// called once more after a lock timeout. After maxTransactionTries the error is store.ErrContended.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) error {
	onCitus, timedOut := false, false
	for try := 1; ; try++ {
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
		if try == maxTransactionTries {
			return fmt.Errorf("%w, %d times: %w", store.ErrContended, try, err)
		}
		// The pauses are random, so that transactions that have collided do not collide again.
		select {
		case <-time.After(rand.N(time.Duration(try) * 10 * time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// maxTransactionTries bounds how often a transaction is tried. The pauses between the tries take less than half a
// second.
const maxTransactionTries = 10

// errChanged means that rows changed after a statement on Citus had read them. The transaction is retried; its next
// attempt sees them.
var errChanged = errors.New("another transaction has changed the rows since they were read")

// batchLock queues a statement that locks the rows that the next statement finds by ctid; see rowOf. On Citus it queues
// nothing, because statements find rows by key.
func batchLock(b *pgx.Batch, conn *pgx.Conn, sql string, args ...any) {
	if !store.IsCitus(conn) {
		b.Queue(sql, args...)
	}
}
