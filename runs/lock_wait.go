package runs

import (
	"context"
	"time"

	"aiv/store"
)

// How long a batch waits for each lock: of a key, a month or a table. Processes update the same months, so the bounds
// are longer than a batch usually takes. After a timeout each key, or account, is retried alone, within the session's
// lock_timeout.
const (
	batchLockWait   = "100ms"
	meteredLockWait = "250ms"
)

// A lockWait bounds each wait for a lock of a transaction: by most or, if that is "", by what the session's lock_timeout
// leaves after the time that has passed.
type lockWait struct {
	most   string
	passed time.Duration
}

// setting returns the statement that sets the bound, and its argument, or "".
func (w lockWait) setting() (sql string, arg any) {
	switch {
	case w.most != "":
		return store.SetLockTimeout, w.most
	case w.passed > 0:
		return store.ShortenLockTimeout, w.passed.Milliseconds()
	}
	return "", nil
}

type (
	// A boundedWrite writes a batch with a bound for each wait for a lock, and a batchWrite is what a Batcher calls.
	boundedWrite = func(context.Context, []*pending, lockWait) ([]writeResult, error)
	batchWrite   = func(context.Context, []*pending) ([]writeResult, error)
)

// within returns write with a bound for each wait for a lock.
func within(most string, write boundedWrite) batchWrite {
	return func(ctx context.Context, batch []*pending) ([]writeResult, error) {
		return write(ctx, batch, lockWait{most: most})
	}
}

// forTheRest returns write for the requests of one key, which have waited since they arrived: the later ones for the
// earlier ones. The session's lock_timeout counts from the arrival of the first request.
func forTheRest(write boundedWrite) batchWrite {
	return func(ctx context.Context, batch []*pending) ([]writeResult, error) {
		return write(ctx, batch, lockWait{passed: time.Since(batch[0].arrived)})
	}
}
