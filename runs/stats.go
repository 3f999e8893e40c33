package runs

import (
	"errors"
	"sync/atomic"

	"aiv/store/batch"
)

// Stats tells how the orders so far have ended, and what the lanes have done.
type Stats struct {
	Created, Replayed, Refused, Conflicts, Failed uint64 // orders
	Jobs                                          uint64 // of the runs created
	Small, Large                                  batch.Stats
}

// Stats returns how the orders so far have ended.
func (r *Runs) Stats() Stats {
	c := &r.counts
	return Stats{c.created.Load(), c.replayed.Load(), c.refused.Load(), c.conflicts.Load(), c.failed.Load(), c.jobs.Load(),
		r.small.Stats(), r.large.Stats()}
}

type counts struct{ created, replayed, refused, conflicts, failed, jobs atomic.Uint64 }

func (c *counts) add(o *Order, receipt *Receipt, err error) {
	_, refused := errors.AsType[*Refusal](err)
	switch {
	case refused:
		c.refused.Add(1)
	case errors.Is(err, ErrKeyReused) || errors.Is(err, ErrKeyInUse):
		c.conflicts.Add(1)
	case err != nil:
		c.failed.Add(1)
	case receipt.Replayed:
		c.replayed.Add(1)
	default:
		c.created.Add(1)
		c.jobs.Add(uint64(o.Proposal.TotalJobs()))
	}
}
