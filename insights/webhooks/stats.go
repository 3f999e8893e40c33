package webhooks

import "time"

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
	case ErrorStatus:
		s.Status++
	case ErrorTimeout:
		s.Timeout++
	case ErrorConnection:
		s.Connection++
	case ErrorTLS:
		s.TLS++
	case ErrorRedirect:
		s.Redirect++
	case ErrorBlocked:
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
