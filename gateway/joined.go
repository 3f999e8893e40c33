package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A joinedRead is a read of one statement. When it gets a turn, other waiting reads share the turn: all statements are
// sent in one round trip. Otherwise aiv and PostgreSQL would wake each other for each page, which costs a quarter of the
// rate of pages of runs.
//
// A shared turn fails a read only if PostgreSQL reports an error of its statement, or if its response cannot be made. If
// the turn ends early for any other reason, the reads without a result are repeated, each in its own turn.
type joinedRead struct {
	rows      int          // the maximum number of rows of the page
	statement pgx.Batch    // has one statement, with the function that reads its rows
	encode    func() error // makes the response

	taken bool          // by the turn of another read; guarded by readQueue.mu
	done  chan struct{} // closed at the end of that turn
	err   error         // nil: encode has made the response; errNotReached: the read has to be repeated
}

var errNotReached = errors.New("a shared turn ended before this read")

const (
	// maxShared bounds the reads of a turn. Their rows are bounded, too: together they have no more than the largest
	// page, and one more for each page.
	maxShared = 4

	// maxSharedTurn bounds the time of a shared turn, in which each statement may take two seconds.
	maxSharedTurn = 3 * time.Second
)

func newJoinedRead(rows int, encode func() error) *joinedRead {
	return &joinedRead{rows: rows, encode: encode, done: make(chan struct{}), err: errNotReached}
}

// readJoined reads in the primary database, in the turn of the read or of another one. It returns errNotReached if the
// read has to be repeated.
func (g *Gateway) readJoined(x *exchange, read *joinedRead) error {
	ctx := g.deadline(x)
	release, err := g.readQueue.acquire(ctx, x.credential().AccountID, read)
	if g.readQueue.leave(read) {
		if release != nil {
			release()
		}
		// The other turn uses x until it ends. Its time is bounded.
		x.roundTrips.Add(1)
		<-read.done
		return read.err
	}
	if err != nil {
		return err
	}
	defer release()
	others := g.readQueue.takeJoined(maxLimit - read.rows)
	defer func() { // also after a panic
		for _, o := range others {
			close(o.done)
		}
	}()
	if len(others) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.readQueue.sharedTurn)
		defer cancel()
	}
	return g.readTogether(ctx, append([]*joinedRead{read}, others...))
}

// readTogether does reads in one round trip, and returns the result of the first one. It makes their responses, too, so
// that MaxReads bounds the pages that are being made.
func (g *Gateway) readTogether(ctx context.Context, reads []*joinedRead) error {
	var b pgx.Batch
	for _, r := range reads {
		statement := r.statement.QueuedQueries[0]
		readRows := statement.Fn
		statement.Fn = func(results pgx.BatchResults) (err error) {
			defer func() {
				// Close would not release the connection. The read is repeated, so that its own request reports the panic.
				if recover() != nil {
					err = errNotReached
				}
			}()
			err = readRows(results)
			// A response stays valid if a later statement fails. After any other error, such as the end of ctx, the
			// read is repeated.
			if _, reported := errors.AsType[*pgconn.PgError](err); reported {
				r.err = err
			} else if err == nil {
				r.err = r.encode()
			}
			return err
		}
		b.QueuedQueries = append(b.QueuedQueries, statement)
	}
	err := g.cfg.Reads.SendBatch(ctx, &b).Close()
	if err != nil && len(reads) == 1 {
		return err
	}
	return reads[0].err
}

// join adds a read to the waiting reads.
func (q *readQueue) join(read *joinedRead) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.joined = append(q.joined, read)
}

// leave removes a read from the waiting reads, and reports whether the turn of another read has taken it.
func (q *readQueue) leave(read *joinedRead) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.joined = slices.DeleteFunc(q.joined, func(r *joinedRead) bool { return r == read })
	return read.taken
}

// takeJoined takes the oldest waiting reads, up to the first that would exceed a number of rows.
func (q *readQueue) takeJoined(rows int) (taken []*joinedRead) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.joined) > 0 && len(taken) < maxShared-1 && q.joined[0].rows <= rows {
		read := q.joined[0]
		read.taken, rows, taken = true, rows-read.rows, append(taken, read)
		q.joined = slices.Delete(q.joined, 0, 1)
	}
	return taken
}
