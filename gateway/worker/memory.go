package worker

import (
	"container/list"
	"sync"
	"time"

	"aiv/store/batch"
)

// Bounds of the memory that requests take for bodies, the values parsed from them, and large responses, in bytes. Small
// requests are not counted and always served. A large request is always served if no other one is in progress.
const (
	maxMemory = 64 << 20
	small     = 32 << 10

	// Requests larger than medium may use maxMemory - forMedium.
	medium    = 1 << 20
	forMedium = 16 << 20
)

// maxTransfer bounds the time that the transfer of a body or a response takes while other requests need memory.
const maxTransfer = time.Second

// A budget is the memory that is left for large requests. A request that does not fit is rejected. It does not wait,
// because it would keep what it has received. A rejection also ends transfers that take longer than maxTransfer, so
// that slow clients do not use up the memory.
type budget struct {
	mu        sync.Mutex
	free      int       // bytes; may be negative, because some reservations always succeed
	counted   int       // requests that take more than small
	transfers list.List // of *exchange, the oldest first
}

// reserve reserves n bytes for a request, besides what it has, or returns batch.ErrOverloaded.
func (b *budget) reserve(x *exchange, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fits(x, n) {
		b.endSlow()
		return batch.ErrOverloaded
	}
	b.take(x, n)
	return nil
}

// expect returns batch.ErrOverloaded if a request of n bytes would be rejected now, so that its body need not be
// received. It reserves nothing: the request may never be sent.
func (b *budget) expect(x *exchange, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fits(x, n) {
		b.endSlow()
		return batch.ErrOverloaded
	}
	return nil
}

// fits reports whether a request may reserve n bytes more. b.mu is locked.
func (b *budget) fits(x *exchange, n int) bool {
	free := b.free
	if x.reserved+n > medium {
		free -= forMedium
	}
	// Only what exceeds small is counted, so most requests need nothing.
	need := beyondSmall(x.reserved+n) - beyondSmall(x.reserved)
	alone := b.counted == 0 || b.counted == 1 && x.reserved > small
	return need <= max(0, free) || alone
}

// reserveAnyway reserves memory that is already in use.
func (b *budget) reserveAnyway(x *exchange, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.take(x, n); b.free < 0 {
		b.endSlow()
	}
}

// take reserves n bytes, whether they fit or not. b.mu is locked.
func (b *budget) take(x *exchange, n int) {
	if x.reserved <= small && x.reserved+n > small {
		b.counted++
	}
	b.free -= beyondSmall(x.reserved+n) - beyondSmall(x.reserved)
	x.reserved += n
}

// keep releases what a request has reserved beyond n bytes.
func (b *budget) keep(x *exchange, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n >= x.reserved {
		return
	}
	if x.reserved > small && n <= small {
		b.counted--
	}
	b.free += beyondSmall(x.reserved) - beyondSmall(n)
	x.reserved = n
}

// beyondSmall returns how much of n bytes is counted.
func beyondSmall(n int) int { return max(0, n-small) }

// transfer calls f, which receives a request's body or sends its response. deadline sets the deadline of that direction
// of the connection. transfer reports whether it ended f by the deadline because f took too long; the connection cannot
// be used for another request then.
func (b *budget) transfer(x *exchange, deadline func(time.Time) error, f func()) (ended bool) {
	b.mu.Lock()
	// endSlow reads these fields under the lock, from the goroutines of other requests.
	x.transferSince, x.deadline = time.Now(), deadline
	e := b.transfers.PushBack(x)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.transfers.Remove(e)
		ended = x.ended
	}()
	f()
	return false
}

// endSlow ends the transfers that have taken longer than maxTransfer. b.mu is locked.
func (b *budget) endSlow() {
	for e := b.transfers.Front(); e != nil; {
		x, next := e.Value.(*exchange), e.Next()
		// The transfers that follow have begun later.
		if time.Since(x.transferSince) < maxTransfer {
			return
		}
		if x.reserved > small {
			b.transfers.Remove(e)
			x.ended = true
			x.deadline(time.Now()) // an error means that the connection has ended
		}
		e = next
	}
}
