package jobs

import (
	"maps"
	"slices"
	"sync"
	"time"

	"aiv/runs/answers"
)

// Stats counts what a Dispatcher has done since it was created.
type Stats struct {
	Claimed     map[string]uint64             // jobs, by provider
	Settlements map[string]map[Outcome]uint64 // that took effect, by provider and outcome
	Expired     map[string]uint64             // leases that ended unrenewed, by provider
	Usage       map[string]Usage              // of answers, by provider
	Started     Histogram                     // seconds from the creation of the run to the first claim, of each job
	Waiting     int                           // claims that wait for jobs
}

// Usage is the total usage that workers reported with answers. It leaves out numbers that they did not know.
type Usage struct{ InputTokens, OutputTokens, Searches uint64 }

func (u Usage) add(v Usage) Usage {
	return Usage{u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens, u.Searches + v.Searches}
}

// plus adds the usage of an answer.
func (u Usage) plus(a *answers.Usage) Usage {
	known := func(n *int64) uint64 {
		if n == nil {
			return 0
		}
		return uint64(*n)
	}
	return u.add(Usage{known(a.InputTokens), known(a.OutputTokens), known(a.Searches)})
}

// A Histogram counts durations.
type Histogram struct {
	Counts [len(StartedBounds) + 1]uint64 // durations up to each bound, and longer ones
	Sum    time.Duration
}

// StartedBounds are the bounds of Stats.Started.
var StartedBounds = [...]time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second, time.Minute,
	5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// counts collects Stats.
type counts struct {
	mu    sync.Mutex
	stats Stats
}

// Stats returns a copy of the counts.
func (d *Dispatcher) Stats() Stats {
	c := &d.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Stats{Claimed: maps.Clone(c.stats.Claimed), Settlements: make(map[string]map[Outcome]uint64), Expired: maps.Clone(c.stats.Expired),
		Usage: maps.Clone(c.stats.Usage), Started: c.stats.Started, Waiting: d.waiters.len()}
	// The inner maps change too, so they are copied.
	for p, by := range c.stats.Settlements {
		out.Settlements[p] = maps.Clone(by)
	}
	return out
}

// claimed counts the grants that a transaction has written.
func (c *counts) claimed(w *claimWrites) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Claimed == nil {
		c.stats.Claimed = make(map[string]uint64)
	}
	for _, g := range w.all {
		n := uint64(g.jobs())
		c.stats.Claimed[g.span.provider] += n
		if g.span.fresh {
			c.stats.Started.add(w.now.Sub(g.span.created), n)
		}
	}
}

// add counts n equal durations.
func (h *Histogram) add(d time.Duration, n uint64) {
	d = max(0, d) // the clock may have stepped back, but a sum must not decrease
	i, _ := slices.BinarySearch(StartedBounds[:], d)
	h.Counts[i] += n
	h.Sum += d * time.Duration(n)
}

// reported counts the reports that a ledger has applied.
func (c *counts) reported(l *ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Settlements == nil {
		c.stats.Settlements, c.stats.Expired = make(map[string]map[Outcome]uint64), make(map[string]uint64)
		c.stats.Usage = make(map[string]Usage)
	}
	for p, u := range l.usage {
		c.stats.Usage[p] = c.stats.Usage[p].add(u)
	}
	for p, by := range l.applied {
		for o, n := range by {
			switch o {
			// An expiry is no settlement of a worker.
			case expired:
				c.stats.Expired[p] += n
			// Renewals are not counted.
			case renewed:
			default:
				if c.stats.Settlements[p] == nil {
					c.stats.Settlements[p] = make(map[Outcome]uint64)
				}
				c.stats.Settlements[p][o] += n
			}
		}
	}
}
