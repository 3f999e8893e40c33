package delivery

import (
	"cmp"
	"maps"
	"time"

	"aiv/insights/webhooks"
)

// Stats counts what a Dispatcher has done since it was made.
type Stats struct {
	Attempts    map[string]uint64 // by outcome: "delivered" or an Error constant of package webhooks; none is left out
	AttemptTime time.Duration     // of all attempts
	InFlight    int               // requests at present
}

func newStats() Stats {
	return Stats{Attempts: map[string]uint64{"delivered": 0, webhooks.ErrorStatus: 0, webhooks.ErrorTimeout: 0, webhooks.ErrorConnection: 0,
		webhooks.ErrorTLS: 0, webhooks.ErrorRedirect: 0, webhooks.ErrorBlocked: 0}}
}

func (s *Stats) count(r result, took time.Duration) {
	s.AttemptTime += took
	s.Attempts[cmp.Or(r.err, "delivered")]++
}

// Stats returns the current counts.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Attempts, s.InFlight = maps.Clone(s.Attempts), d.turns.inFlight
	return s
}
