package gateway

import (
	"context"
	"time"

	"aiv/store"
	"aiv/store/batch"
)

// readers bounds the reads that use the database at a time. Reads have a pool of their own, so that slow ones cannot take
// the connections of counting and writing; readers keeps the queue for that pool short.
type readers struct {
	slots   chan struct{}
	waiting share
}

// maxReadWait is how long a read waits for a connection.
const maxReadWait = 2 * time.Second

func newReaders(atATime, maxWaiting int) *readers {
	return &readers{slots: make(chan struct{}, atATime), waiting: share{max: maxWaiting, maxOfOne: partOf(maxWaiting)}}
}

// partOf returns how many of the requests that may wait may be of one account.
func partOf(maxWaiting int) int { return (maxWaiting + 3) / 4 }

// readPage calls f with a database that contains everything that was committed when the request was counted: the standby if it
// has all of that, else the primary, also when f fails at the standby.
func (g *Gateway) readPage(ctx context.Context, x *exchange, f func(context.Context, store.Querier) error) error {
	leave, err := g.readers.enter(ctx, x.credential().AccountID)
	if err != nil {
		return err
	}
	defer leave()
	if g.cfg.Standby != nil {
		if done, err := g.cfg.Standby.Read(ctx, x.admission.WALPosition, f); done {
			return err
		}
	}
	return f(ctx, g.cfg.Reads)
}

// enter waits for its turn. It returns batch.ErrOverloaded when too many reads wait, in total or of the account, or when the
// wait takes too long.
func (r *readers) enter(ctx context.Context, account store.ID) (leave func(), err error) {
	leave = func() { <-r.slots }
	select {
	case r.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if !r.waiting.take(account, 1) {
		return nil, batch.ErrOverloaded
	}
	defer r.waiting.take(account, -1)
	timer := time.NewTimer(maxReadWait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return leave, nil
	case <-timer.C:
		return nil, batch.ErrOverloaded
	case <-ctx.Done():
		return nil, batch.ErrOverloaded
	}
}
