package runs

import (
	"errors"
	"sync/atomic"

	"aiv/store/batch"
)

// Stats counts the create requests so far by result, and describes the batchers.
type Stats struct {
	Created, Replayed, Refused, Conflicts, Failed uint64 // create requests
	Jobs                                          uint64 // of the runs created
	Small, Large, Metered, LargeMetered, Reads    batch.Stats
}

// Stats returns the counts so far.
func (r *Runs) Stats() Stats {
	c := &r.counts
	return Stats{c.created.Load(), c.replayed.Load(), c.refused.Load(), c.conflicts.Load(), c.failed.Load(), c.jobs.Load(),
		r.small.Stats(), r.large.Stats(), r.metered.Stats(), r.largeMetered.Stats(), r.reads.Stats()}
}

type counts struct{ created, replayed, refused, conflicts, failed, jobs atomic.Uint64 }

func (c *counts) add(q *CreateRequest, result *CreateResult, err error) {
	_, refused := errors.AsType[*Refusal](err)
	_, exceeded := errors.AsType[*QuotaError](err)
	switch {
	case refused || exceeded:
		c.refused.Add(1)
	case errors.Is(err, ErrKeyReused) || errors.Is(err, ErrKeyInUse):
		c.conflicts.Add(1)
	case err != nil:
		c.failed.Add(1)
	case result.Replayed:
		c.replayed.Add(1)
	default:
		c.created.Add(1)
		c.jobs.Add(uint64(q.Proposal.TotalJobs()))
	}
}
