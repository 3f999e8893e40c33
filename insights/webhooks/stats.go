package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
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

// A Backlog describes the pending deliveries of all accounts.
type Backlog struct {
	Pending int           // counted up to a maximum; with those of disabled endpoints and those that wait for a retry
	Lag     time.Duration // how long the oldest due delivery to an enabled endpoint has been due
}

// ReadBacklog reads the backlog. Its cost does not grow with the number of deliveries: it counts up to most.
func ReadBacklog(ctx context.Context, pool *pgxpool.Pool, most int) (b Backlog, err error) {
	const accounts = 200
	var seconds float64
	err = pool.QueryRow(ctx, readBacklog, store.OnCitus(citusBacklog), accounts, most).Scan(&b.Pending, &seconds)
	b.Lag = max(0, time.Duration(seconds*float64(time.Second)))
	return b, err
}
