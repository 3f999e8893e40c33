package gateway

import (
	"context"
	"fmt"
	"sync"

	"aiv/auth"
	"aiv/store"
	"aiv/store/batch"
)

// readPage returns the page that read returns. Requests for the same page that wait for their turn share one read, which begins
// when all of them have been counted.
//
// Clients that poll a page thus use one connection, not one each, and all have the page after one turn; if each had to wait for
// its own turn, the last would be rejected after maxReadWait. If the first of them times out while it waits, all get its error:
// at most as many requests as an account may have waiting, and they can be sent again.
func (g *Gateway) readPage(ctx context.Context, x *exchange, read func(context.Context, store.Querier) (page, error)) (page, error) {
	key := pageKey{x.credential(), x.plain, x.tool != nil, x.answerChars(), x.path, x.params.Encode(), x.admission.WALPosition}
	p, first := g.readQueue.pending.join(key)
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
	g.readQueue.pending.begin(key)
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

// A page is an encoded page of a list.
type page struct {
	body []byte
	link string // to the next page; empty if there is none

	mediaType string // empty: application/json
}

// A pageKey is what a page depends on besides the database. The credential decides what a list of events may contain.
type pageKey struct {
	credential   *auth.Credential
	plain        bool // form of the link
	tool         bool // bounds the size
	answerChars  int  // of the texts of answers that a tool shows
	path, params string
	position     string // of the WAL, which a standby must have replayed
}

// A pageRead is the read of a page. The page and the error are set before done is closed.
type pageRead struct {
	done chan struct{}
	page page
	err  error
}

// pendingReads are the reads of pages that wait for their turn.
type pendingReads struct {
	mu     sync.Mutex
	byPage map[pageKey]*pageRead
}

// join returns the read of a page that has not begun. If there is none, the caller is the first, and its read is the one that
// others join.
func (r *pendingReads) join(key pageKey) (p *pageRead, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p = r.byPage[key]; p != nil {
		return p, false
	}
	p = &pageRead{done: make(chan struct{})}
	r.byPage[key] = p
	return p, true
}

// begin makes later requests for the page read it again.
func (r *pendingReads) begin(key pageKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byPage, key)
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
