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
		// Each try may get a different connection.
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

// A lockedChange is a statement that finds rows by ctid, and the statement that locks them before; see rowOf. Both have
// the same parameters. On Citus the change finds rows by key and needs no lock.
type lockedChange struct {
	lock, change string
	onCitus      store.OnCitus
}

// queue queues the change, after its lock.
func (c *lockedChange) queue(b *pgx.Batch, conn *pgx.Conn, args ...any) *pgx.QueuedQuery {
	if !store.IsCitus(conn) {
		b.Queue(c.lock, args...)
	}
	return b.Queue(c.change, append([]any{c.onCitus}, args...)...)
}
