package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"aiv/auth"
	"aiv/gateway/wire"
	"aiv/store"
	"aiv/store/batch"
)

// A readQueue bounds the reads that use the database at a time, and those that wait. Reads have a pool of their own, so that slow ones
// cannot take the connections of counting and writing.
type readQueue struct {
	slots   chan struct{}
	waiting share

	mu      sync.Mutex
	pending map[pageKey]*pageRead // reads of pages that wait for their turn
}

// maxReadWait is how long a read waits for a connection.
const maxReadWait = 2 * time.Second

func newReadQueue(atATime, maxWaiting int) *readQueue {
	return &readQueue{
		slots: make(chan struct{}, atATime), waiting: share{max: maxWaiting, maxOfOne: batch.PartOf(maxWaiting)}, pending: make(map[pageKey]*pageRead),
	}
}

// A page is an encoded page of a list.
type page struct {
	body []byte
	link string // to the next page; empty if there is none
}

// A pageKey is what a page depends on besides the database. The credential decides what a list of events may contain.
type pageKey struct {
	credential   *auth.Credential
	plain        bool // form of the link
	path, params string
	position     string // of the WAL, which a standby must have replayed
}

// A pageRead is the read of a page. The page and the error are set before done is closed.
type pageRead struct {
	done chan struct{}
	page page
	err  error
}

// readPage returns the page that read returns. Requests for the same page that wait for their turn share one read, which begins
// when all of them have been counted: clients that poll a page use one connection, not one each. If the first of them times out
// while it waits, all get its error.
func (g *Gateway) readPage(ctx context.Context, x *exchange, read func(context.Context, store.Querier) (page, error)) (page, error) {
	key := pageKey{x.credential(), x.plain, x.path, x.params.Encode(), x.admission.WALPosition}
	p, first := g.readQueue.join(key)
	if !first {
		return g.readQueue.wait(ctx, key.credential.AccountID, p)
	}
	p.err = fmt.Errorf("the read of %s did not end", key.path) // if read panics
	defer close(p.done)
	p.page, p.err = g.readFirst(ctx, key, read)
	return p.page, p.err
}

// readFirst waits for its turn and reads.
func (g *Gateway) readFirst(ctx context.Context, key pageKey, read func(context.Context, store.Querier) (page, error)) (p page, err error) {
	release, err := g.readQueue.acquire(ctx, key.credential.AccountID)
	g.readQueue.begin(key)
	if err != nil {
		return p, err
	}
	defer release()
	err = g.read(ctx, key.position, func(ctx context.Context, db store.Querier) (err error) {
		p, err = read(ctx, db)
		return err
	})
	return p, err
}

// read calls f with a database that contains everything that was committed when the request was counted: the standby if it
// has all of that. Otherwise, and if f fails on the standby, it uses the primary.
func (g *Gateway) read(ctx context.Context, position string, f func(context.Context, store.Querier) error) error {
	if g.cfg.Standby != nil {
		if done, err := g.cfg.Standby.Read(ctx, position, f); done {
			return err
		}
	}
	return f(ctx, g.cfg.Reads)
}

// inReads calls f when one of the connections for reads is free. f must not send the response, which a slow client can delay.
func (g *Gateway) inReads(x *exchange, r *http.Request, f func(context.Context) error) error {
	ctx, cancel := g.deadline(x, r)
	defer cancel()
	release, err := g.readQueue.acquire(ctx, x.credential().AccountID)
	if err != nil {
		return err
	}
	defer release()
	return f(ctx)
}

// respondInReads calls f as inReads does, and responds with the document that f returns.
func (g *Gateway) respondInReads(x *exchange, r *http.Request, status int, f func(context.Context) (document any, err error)) error {
	var document any
	err := g.inReads(x, r, func(ctx context.Context) (err error) {
		document, err = f(ctx)
		return err
	})
	if err != nil {
		return err
	}
	x.write(status, "application/json", wire.Encode(document))
	return nil
}

// join returns the read of a page that has not begun. If there is none, the caller is the first, and its read is the one that
// others join.
func (r *readQueue) join(key pageKey) (p *pageRead, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p = r.pending[key]; p != nil {
		return p, false
	}
	p = &pageRead{done: make(chan struct{})}
	r.pending[key] = p
	return p, true
}

// begin makes later requests for the page read it again.
func (r *readQueue) begin(key pageKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, key)
}

// wait waits for the read of another request.
func (r *readQueue) wait(ctx context.Context, account store.ID, p *pageRead) (page, error) {
	if !r.waiting.take(account, 1) {
		return page{}, batch.ErrOverloaded
	}
	defer r.waiting.release(account, 1)
	store.AddRoundTrip(ctx)
	select {
	case <-p.done:
		return p.page, p.err
	case <-ctx.Done():
		return page{}, batch.ErrOverloaded
	}
}

// acquire waits for the turn of a read, which release ends. It returns batch.ErrOverloaded when too many reads wait, in total or of
// the account, or when the wait takes too long.
func (r *readQueue) acquire(ctx context.Context, account store.ID) (release func(), err error) {
	release = func() { <-r.slots }
	select {
	case r.slots <- struct{}{}:
		return release, nil
	default:
	}
	if !r.waiting.take(account, 1) {
		return nil, batch.ErrOverloaded
	}
	defer r.waiting.release(account, 1)
	timer := time.NewTimer(maxReadWait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return release, nil
	case <-timer.C:
		return nil, batch.ErrOverloaded
	case <-ctx.Done():
		return nil, batch.ErrOverloaded
	}
}
