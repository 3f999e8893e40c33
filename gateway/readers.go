package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"aiv/store/batch"
)

// readers bounds the reads that use the database at a time. Reads have a pool of their own, so that slow ones cannot take
// the connections of counting and writing; readers keeps the queue for that pool short.
type readers struct {
	slots      chan struct{}
	waiting    atomic.Int64
	maxWaiting int64
}

// maxReadWait is how long a read waits for a connection.
const maxReadWait = 2 * time.Second

func newReaders(atATime, maxWaiting int) *readers {
	return &readers{slots: make(chan struct{}, atATime), maxWaiting: int64(maxWaiting)}
}

// enter waits for its turn. It returns batch.ErrOverloaded when too many reads wait, or when the wait takes too long.
func (r *readers) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-r.slots }
	select {
	case r.slots <- struct{}{}:
		return leave, nil
	default:
	}
	defer r.waiting.Add(-1)
	if r.waiting.Add(1) > r.maxWaiting {
		return nil, batch.ErrOverloaded
	}
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
