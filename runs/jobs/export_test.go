package jobs

import (
	"context"
	"crypto/md5"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
)

// The statements whose cost must not depend on how many jobs, runs and accounts there are, with arguments that fit
// them.
var FlatStatements = map[string][]any{
	readSupply:    {[]string{"p1"}, 10},
	claimable:     {nil},
	expiredLeases: nil,
	overdueLeases: nil,
	// Reads of a run.
	`SELECT ` + runs.RunningJobs("r.account_id") + ` FROM (
  SELECT md5($1)::uuid AS account_id, md5($2)::uuid AS id, 'running' AS status, 2000 AS total_jobs, 0 AS jobs_returned, 0 AS jobs_completed,
    0 AS jobs_failed) r`: {"a1", "r1"},
}

// EraseTurns is eraseTurns.
var EraseTurns = eraseTurns

// PurgeStatements is FlatStatements for plain sessions.
var PurgeStatements = map[string][]any{
	answeredRuns:  {time.Now().Add(-MinAnswersKept), time.Time{}, store.ID{}, store.ID{}, 10},
	deleteAnswers: {md5ID("a1"), md5ID("f1"), 1, 2000, time.Now().Add(-MinAnswersKept)},
}

// md5ID returns the id that SQL makes by md5(text)::uuid.
func md5ID(text string) store.ID { return store.ID(md5.Sum([]byte(text))) }

// Poll wakes waiting claims once.
func (d *Dispatcher) Poll(ctx context.Context) error { return d.poll(ctx) }

// Asleep returns how many waiting claims have not been woken.
func (d *Dispatcher) Asleep() (n int) {
	d.waiters.mu.Lock()
	defer d.waiters.mu.Unlock()
	for e := d.waiters.waiting.Front(); e != nil; e = e.Next() {
		if !e.Value.(*waiter).awake {
			n++
		}
	}
	return n
}

// Reports returns how many reports were applied, by transactions of any number of them.
func (d *Dispatcher) Reports() uint64 { return d.reports.Stats().Inputs }

// ReadClock is the statement of a settlement after those that lock its runs.
var ReadClock = readClockAndRevoked

// LockClaims is the first statement of a claim.
const LockClaims = lockClaims

// Claims returns how many claims were served by transactions.
func (d *Dispatcher) Claims() uint64 { return d.claims.Stats().Inputs }

// SettleTogether applies requests in one transaction, as a batch of concurrent ones.
func (d *Dispatcher) SettleTogether(ctx context.Context, requests ...[]Settlement) (replies [][]Reply, err error) {
	replies, _, err = d.SettleFrom(ctx, make([]Reporter, len(requests)), requests...)
	return replies, err
}

// ClaimTogether serves claims in one transaction.
func (d *Dispatcher) ClaimTogether(ctx context.Context, requests ...*ClaimRequest) (claimed [][]Job, errs []error, err error) {
	out, err := d.claimAll(ctx, requests)
	for _, o := range out {
		claimed, errs = append(claimed, o.items), append(errs, o.err)
	}
	return claimed, errs, err
}

// SettleFrom applies the reports of several workers in one transaction.
func (d *Dispatcher) SettleFrom(ctx context.Context, from []Reporter, settlements ...[]Settlement) (replies [][]Reply, errs []error, err error) {
	var reports []*report
	for i, s := range settlements {
		reports = append(reports, &report{from[i], s})
	}
	out, err := d.reportAll(ctx, reports)
	for _, o := range out {
		replies, errs = append(replies, o.items), append(errs, o.err)
	}
	return replies, errs, err
}

// ReportsWaiting returns how many reports wait for a transaction.
func (d *Dispatcher) ReportsWaiting() int { return d.reports.Stats().Waiting }

// FirstOverdue returns the run of the overdue lease that a sweep would end first.
func (d *Dispatcher) FirstOverdue(ctx context.Context) (run store.ID, err error) {
	err = d.cfg.Pool.QueryRow(ctx, overdueLeases, d.outage.Reachable(citusOverdue)).Scan(nil, &run, nil, nil, nil)
	return run, err
}

// FreshSpans returns how many spans of fresh jobs a transaction reads for a number of jobs.
func FreshSpans(ctx context.Context, pool *pgxpool.Pool, jobs int) (n int, err error) {
	err = pool.QueryRow(ctx, `SELECT count(*) FROM (`+readSupply+`) s WHERE s.fresh`, nil, jobs).Scan(&n)
	return n, err
}
