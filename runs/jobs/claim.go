package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
)

// A ClaimRequest is a worker's request for jobs.
type ClaimRequest struct {
	Worker    store.ID // the claim fails if it is revoked
	Providers []string // nil: all
	Limit     int      // of jobs
	Lease     time.Duration
	Wait      time.Duration // for the first job
}

// A Job is a claimed job with everything that the worker needs.
type Job struct {
	Key        Key
	Attempt    int // from 1; a settlement must repeat it
	LeaseUntil time.Time
	Provider   string
	Repetition int            // from 1
	Question   *Question      // shared by jobs of one grant
	Parameters *RunParameters // shared by jobs of one grant
}

// RunParameters are the parameters that all jobs of one run and model have in common.
type RunParameters struct {
	MeasurementType, MethodologyVersion string
	Locale, Country, Language           string
	ModelID, ProviderModel              string
}

// A Question is the question of a job.
type Question struct{ ID, Text, Language, Country string }

// Claim hands out jobs. If there are none, it waits for the first one until r.Wait is over, ctx is done or Stop is
// called. It returns auth.ErrUnknownWorker for a worker that is revoked. A claim that waits uses no connection: polls
// and other claims wake it (waiters).
func (d *Dispatcher) Claim(ctx context.Context, r *ClaimRequest) ([]Job, error) {
	jobs, err := d.claim(ctx, r)
	if err != nil || len(jobs) > 0 || r.Wait <= 0 {
		return jobs, err
	}
	// Jobs that become claimable before add are found by the next poll.
	self := &waiter{providers: r.Providers, wake: make(chan func(*waiter) bool, 1)}
	element := d.waiters.add(self)
	defer d.waiters.remove(element)
	end := time.NewTimer(r.Wait)
	defer end.Stop()
	for {
		var matches func(*waiter) bool
		select {
		case matches = <-self.wake:
		case <-end.C:
			return nil, nil
		case <-d.stopped.Done():
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		jobs, err := d.claim(ctx, r)
		if errors.Is(err, auth.ErrUnknownWorker) {
			d.waiters.wake(1, matches) // instead of this one
		}
		if len(jobs) > 0 {
			// There may be more jobs of these providers.
			d.waiters.wake(2, func(other *waiter) bool {
				return slices.ContainsFunc(jobs, func(j Job) bool { return accepts(other.providers, j.Provider) })
			})
		}
		if err != nil || len(jobs) > 0 {
			return jobs, err
		}
		// Other claims got the jobs.
		d.waiters.sleep(self)
	}
}

// A response is the result of one request of a batch.
type response[T any] struct {
	items []T
	err   error
}

// claim is Claim without waiting. It shares a transaction with other claims.
func (d *Dispatcher) claim(ctx context.Context, r *ClaimRequest) ([]Job, error) {
	out, err := d.claims.Do(ctx, r)
	return out.items, cmp.Or(err, out.err)
}

// claimAll serves claims in one transaction. On Citus it tries again without the accounts of a server that it finds to
// be unreachable.
func (d *Dispatcher) claimAll(ctx context.Context, requests []*ClaimRequest) (out []response[Job], err error) {
	err = d.cfg.Outage.Retry(ctx, func() (err error) {
		out, err = d.tryClaims(ctx, requests)
		return err
	})
	return out, err
}

// tryClaims reads the supply under the lock of claims, shares it among the claims, and writes and commits the grants.
func (d *Dispatcher) tryClaims(ctx context.Context, requests []*ClaimRequest) ([]response[Job], error) {
	out := make([]response[Job], len(requests))
	demands, workers := make([]demand, len(requests)), make([]store.ID, len(requests))
	for i, r := range requests {
		demands[i], workers[i] = demand{r.Limit, r.Providers}, r.Worker
	}
	err := inTransaction(ctx, d.cfg.Pool, func(c *pgxpool.Conn) error {
		conn := c.Conn()
		s, err := d.readClaimState(ctx, conn, demands, workers)
		if err != nil {
			return err
		}
		d.noteClock(s.now)
		for i, r := range requests {
			if slices.Contains(s.revoked, r.Worker) {
				// The claim stays in the batch, and gets nothing.
				demands[i].limit, out[i].err = 0, auth.ErrUnknownWorker
			}
		}
		grants := allot(s.supply, demands, s.firstTurn)
		// Nothing was granted, admitted or deleted.
		if !slices.ContainsFunc(grants, func(g []grant) bool { return len(g) > 0 }) && !s.changed {
			// nextval writes WAL at times. A commit would wait until a synchronous standby has it.
			_, err := conn.Exec(ctx, "ROLLBACK")
			return err
		}
		// A transaction with changes must commit even if it grants nothing.
		w := &claimWrites{now: s.now, requests: requests, grants: grants, supply: s.supply}
		if err := w.write(ctx, conn); err != nil {
			return err
		}
		for i := range requests {
			out[i].items = w.jobs(i)
		}
		d.counts.claimed(w)
		return nil
	})
	return out, err
}
