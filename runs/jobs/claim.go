package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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

// Claim hands out jobs. If there are none, it waits for the first one until r.Wait is over, ctx is done or Stop is called.
func (d *Dispatcher) Claim(ctx context.Context, r *ClaimRequest) ([]Job, error) {
	if r.Providers == nil || len(r.Providers) > 0 { // without a provider there are no jobs
		jobs, err := d.claims.Do(ctx, r)
		if err != nil || len(jobs) > 0 {
			return jobs, err
		}
	}
	if r.Wait <= 0 {
		return nil, nil
	}
	self := &waiter{providers: r.Providers, wake: make(chan struct{}, 1)}
	place := d.waiters.add(self)
	defer d.waiters.remove(place)
	end := time.NewTimer(r.Wait)
	defer end.Stop()
	for {
		select {
		case <-self.wake:
		case <-end.C:
			return nil, nil
		case <-d.waiters.closed:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		jobs, err := d.claims.Do(ctx, r)
		if len(jobs) > 0 {
			d.waiters.wake(2, func(other *waiter) bool {
				return slices.ContainsFunc(jobs, func(j Job) bool { return accepts(other.providers, j.Provider) })
			})
		}
		if err != nil || len(jobs) > 0 {
			return jobs, err
		}
		d.waiters.sleep(self)
	}
}

// claimAll serves claims in one transaction. On Citus it tries again without the accounts of a server that it finds to be unreachable.
func (d *Dispatcher) claimAll(ctx context.Context, requests []*ClaimRequest) (out [][]Job, err error) {
	err = d.outage.Retry(ctx, func() (err error) {
		out, err = d.tryClaims(ctx, requests)
		return err
	})
	return out, err
}

func (d *Dispatcher) tryClaims(ctx context.Context, requests []*ClaimRequest) ([][]Job, error) {
	out := make([][]Job, len(requests))
	demands := make([]demand, len(requests))
	for i, r := range requests {
		demands[i] = demand{r.Limit, r.Providers}
	}
	err := inTransaction(ctx, d.cfg.Pool, func(c *pgxpool.Conn) error {
		conn := c.Conn()
		s, err := d.readQueues(ctx, conn, demands)
		if err != nil {
			return err
		}
		d.noteClock(s.now)
		grants := allot(s.supply, demands, s.turn)
		if !slices.ContainsFunc(grants, func(g []grant) bool { return len(g) > 0 }) && !s.changed {
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

// A description is a row of describeGrants: the parameters and questions of a grant.
type description struct {
	order                  Order
	repetitions, questions int
	first                  int // of the questions, from 1
	ids, texts             []string
	languages, countries   []string
}

func (w *claimWrites) queueDescriptions(b *pgx.Batch) {
	var accounts, runs []store.ID
	var first, last []int32
	var grants []*grant
	for _, g := range w.all {
		grants = append(grants, g)
		accounts, runs = append(accounts, g.span.account), append(runs, g.span.run)
		first, last = append(first, g.first), append(last, g.last)
	}
	if len(grants) == 0 {
		return
	}
	w.described = make(map[*span]map[int32]*description, len(grants))
	b.Queue(describeGrants, store.OnCitus(citusGrants), accounts, runs, first, last).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var no int
			var d description
			o := &d.order
			if err := rows.Scan(&no, &o.MeasurementType, &o.MethodologyVersion, &o.Locale, &o.Country, &o.Language, &d.repetitions,
				&d.questions, &o.ModelID, &o.ProviderModel, &d.first, &d.ids, &d.texts, &d.languages, &d.countries); err != nil {
				return err
			}
			g := grants[no-1]
			if w.described[g.span] == nil {
				w.described[g.span] = make(map[int32]*description)
			}
			w.described[g.span][g.first] = &d
		}
		return rows.Err()
	})
}

// jobs returns the jobs of one claim.
func (w *claimWrites) jobs(claim int) []Job {
	var out []Job
	for i := range w.grants[claim] {
		g := &w.grants[claim][i]
		d := w.described[g.span][g.first]
		if d == nil || !w.started[runKey{g.span.account, g.span.run}] {
			continue
		}
		questions := make([]Question, len(d.ids))
		for i := range questions {
			questions[i] = Question{d.ids[i], d.texts[i], d.languages[i], d.countries[i]}
		}
		until := w.now.Add(w.requests[claim].Lease)
		for ordinal := g.first; ordinal <= g.last; ordinal++ {
			at := int(ordinal) - 1
			out = append(out, Job{
				Key: Key{g.span.account, g.span.run, ordinal}, Attempt: int(g.span.attempt) + 1, LeaseUntil: until, Provider: g.span.provider,
				Repetition: at%d.repetitions + 1, Question: &questions[at/d.repetitions%d.questions+1-d.first], Order: &d.order,
			})
		}
	}
	return out
}
