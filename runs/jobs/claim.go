package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A ClaimRequest is a worker's request for jobs.
type ClaimRequest struct {
	Worker    store.ID
	Providers []string // nil: all
	Limit     int
	Lease     time.Duration
	Wait      time.Duration // for the first job
}

// A Job is a claimed job with everything that the worker needs.
type Job struct {
	Key        Key
	Attempt    int
	LeaseUntil time.Time
	Provider   string
	Repetition int
	Question   *Question
	Order      *Order
}

// An Order contains the parameters common to all jobs of one run and model.
type Order struct {
	MeasurementType, MethodologyVersion string
	Locale, Country, Language           string
	ModelID, ProviderModel              string
}

// A Question is the question of a job.
type Question struct{ ID, Text, Language, Country string }

// claimAll serves claims in one transaction.
func (d *Dispatcher) claimAll(ctx context.Context, requests []*ClaimRequest) ([][]Job, error) {
	out := make([][]Job, len(requests))
	demands := make([]demand, len(requests))
	for i, r := range requests {
		demands[i] = demand{limit: r.Limit, providers: r.Providers, all: r.Providers == nil}
	}
	err := inTransaction(ctx, d.cfg.Pool, func(conn *pgx.Conn) error {
		s, err := readQueues(ctx, conn, demands)
		if err != nil {
			return err
		}
		d.noteClock(s.now)
		grants := allot(s.supply, demands, s.turn)
		if !slices.ContainsFunc(grants, func(g []grant) bool { return len(g) > 0 }) && !s.changed && len(s.idle) == 0 {
			return rollback(ctx, conn)
		}
		w := newClaimWrites(s, requests, grants)
		if err := w.run(ctx, conn); err != nil {
			return err
		}
		for i := range requests {
			out[i] = w.jobs(i)
		}
		d.counts.claimed(w)
		return nil
	})
	return out, err
}
