package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"aiv/gateway/wire"
	"aiv/store"
	"aiv/store/batch"
)

// A readQueue bounds the turns in which reads use the database, and the reads that wait. Reads have a separate pool, so
// that slow reads cannot take the connections of counting and writing. Changes of brands, questions, schedules and
// webhooks wait here too, because they use the same pool.
type readQueue struct {
	slots   chan struct{} // has an element for each turn, which one read uses, or several joined reads
	waiting share

	wait, sharedTurn time.Duration // maxReadWait and maxSharedTurn; longer in tests

	mu     sync.Mutex
	joined []*joinedRead // the joined reads that wait, in the order of their arrival
}

// maxReadWait bounds the time that a read waits for a connection.
const maxReadWait = 2 * time.Second

func newReadQueue(atATime, maxWaiting int) *readQueue {
	return &readQueue{slots: make(chan struct{}, atATime), waiting: share{max: maxWaiting, maxOfOne: batch.PartOf(maxWaiting)},
		wait: maxReadWait, sharedTurn: maxSharedTurn}
}

// read calls f with a database that contains everything that was committed when the request was counted: the standby if
// it has all of that. Otherwise, and if f fails on the standby, it uses the primary. position is the WAL position of
// the request's admission. f may be called twice, and must then start over.
func (g *Gateway) read(ctx context.Context, position string, f func(context.Context, store.Querier) error) error {
	if g.cfg.Standby != nil {
		if done, err := g.cfg.Standby.Read(ctx, position, f); done {
			return err
		}
	}
	return f(ctx, g.cfg.Reads)
}

// inReads calls f when one of the connections for reads is free. f must not send the response, which a slow client can
// delay. When f returns, the connection is free for the next read.
func (g *Gateway) inReads(x *exchange, f func(context.Context) error) error {
	ctx := g.deadline(x)
	release, err := g.readQueue.acquire(ctx, x.credential().AccountID, nil)
	if err != nil {
		return err
	}
	defer release()
	return f(ctx)
}

// readOne calls f as inReads and read do, and returns what f returns.
func readOne[T any](g *Gateway, x *exchange, f func(context.Context, store.Querier) (T, error)) (one T, err error) {
	err = g.inReads(x, func(ctx context.Context) error {
		return g.read(ctx, x.admission.WALPosition, func(ctx context.Context, db store.Querier) (err error) {
			one, err = f(ctx, db)
			return err
		})
	})
	return one, err
}

// respondInReads calls f as inReads does, and responds with the document that f returns.
func (g *Gateway) respondInReads(x *exchange, status int, f func(context.Context) (document any, err error)) error {
	var document any
	err := g.inReads(x, func(ctx context.Context) (err error) {
		document, err = f(ctx)
		return err
	})
	if err != nil {
		return err
	}
	x.write(status, "application/json", wire.Encode(document))
	return nil
}

// asDocument returns a function of the results of a call: it returns the document of what was returned, or the error.
func asDocument[T, D any](document func(*T) D) func(*T, error) (any, error) {
	return func(t *T, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return document(t), nil
	}
}

// deleteInReads deletes the object in the path. It accepts a request without a body at the plain address, because
// clients of a DELETE rarely send one, and the body {}.
func (g *Gateway) deleteInReads(x *exchange, r *http.Request, idOf func(*http.Request) (store.ID, error),
	f func(ctx context.Context, account, id store.ID) error) error {
	// An envelope always has a body.
	if x.envelope != nil || !withoutBody(r) {
		if err := readEmptyBody(x, r); err != nil {
			return err
		}
	}
	id, err := idOf(r)
	if err != nil {
		return err
	}
	// The body was read before the wait for a turn, so that a slow client does not hold one.
	err = g.inReads(x, func(ctx context.Context) error { return f(ctx, x.credential().AccountID, id) })
	if err != nil {
		return err
	}
	x.set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// acquire waits for the turn of a read, which release ends. It returns batch.ErrOverloaded when too many reads wait, in
// total or of the account, or when the wait takes too long. While a joined read waits, the turn of another read may
// take it; if that turn ends first, acquire returns neither a turn nor an error. joined may be nil.
func (r *readQueue) acquire(ctx context.Context, account store.ID, joined *joinedRead) (release func(), err error) {
	release = func() { <-r.slots }
	// A read that need not wait does not count against the account's share of waiting reads.
	select {
	case r.slots <- struct{}{}:
		return release, nil
	default:
	}
	if !r.waiting.take(account, 1) {
		return nil, batch.ErrOverloaded
	}
	defer r.waiting.release(account, 1)
	var done chan struct{} // nil: never closed
	if joined != nil {
		done = joined.done
		r.join(joined)
	}
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return release, nil
	case <-done:
		return nil, nil
	case <-timer.C:
		return nil, batch.ErrOverloaded
	// The deadline of the whole request has passed.
	case <-ctx.Done():
		return nil, batch.ErrOverloaded
	}
}

// A share counts what is in use, such as bytes or requests, in total and by account.
type share struct {
	max, maxOfOne int // in total, and of one account

	mu    sync.Mutex
	taken int
	by    map[store.ID]int // without accounts that have nothing taken
}

// take reserves n for an account. If that would exceed a bound, it reserves nothing and reports false.
func (s *share) take(account store.ID, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken+n > s.max || s.by[account]+n > s.maxOfOne {
		return false
	}
	if s.by == nil {
		s.by = make(map[store.ID]int)
	}
	s.taken += n
	s.by[account] += n
	return true
}

// release returns n that an account has taken.
func (s *share) release(account store.ID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[account] -= n; s.by[account] == 0 {
		delete(s.by, account)
	}
}
