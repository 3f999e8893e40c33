package delivery

import (
	"time"

	"aiv/insights/webhooks"
)

// Stats counts what a Dispatcher has done since it was made.
type Stats struct {
	Delivered, Status, Timeout, Connection, TLS, Redirect, Blocked uint64 // attempts, by outcome

	AttemptTime time.Duration // of all attempts
	Commits     uint64        // transactions that wrote outcomes
	CommitTime  time.Duration

	// At present.
	Accounts  int // that the process owns
	InFlight  int // requests
	Bytes     int // of event data in memory
	Unwritten int // outcomes
}

func (s *Stats) count(r result, took time.Duration) {
	s.AttemptTime += took
	switch r.err {
	case "":
		s.Delivered++
	case webhooks.ErrorStatus:
		s.Status++
	case webhooks.ErrorTimeout:
		s.Timeout++
	case webhooks.ErrorConnection:
		s.Connection++
	case webhooks.ErrorTLS:
		s.TLS++
	case webhooks.ErrorRedirect:
		s.Redirect++
	case webhooks.ErrorBlocked:
		s.Blocked++
	}
}

// Stats returns the current counts.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Accounts, s.InFlight, s.Bytes, s.Unwritten = len(d.accounts), d.turns.inFlight, d.turns.bytes, len(d.outcomes)
	return s
}
