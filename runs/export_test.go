package runs

import "context"

// WriteTogether writes runs in one transaction, which waits for locks for as long as its session allows.
func (r *Runs) WriteTogether(ctx context.Context, requests []*CreateRequest, metered bool) error {
	batch := make([]*pending, len(requests))
	jobs := 0
	for i, q := range requests {
		batch[i] = r.newPending(q, "AIVM-1.0")
		jobs += batch[i].run.TotalJobs
	}
	write := r.insert
	switch {
	case metered:
		write = r.writeMetered
	case jobs > maxBatchJobs:
		write = r.writeLarge
	}
	_, err := write(ctx, batch, lockWait{})
	return err
}
