package jobs

import (
	"math"

	"github.com/jackc/pgx/v5"
)

// A lateReport is a report by an attempt that does not hold its job.
type lateReport struct {
	*Settlement
	providers []string
	record    *record // nil: there is no such job, or its provider is not one of the worker's
	reply     *Reply
}

// batchRecords reads what is recorded about the jobs and attempts of late reports. It follows the statements that write
// the ledger, so that it finds reports of the same batch.
func (l *ledger) batchRecords(b *pgx.Batch, late []*lateReport) {
	if len(late) == 0 {
		return
	}
	var k leaseKeys
	var attempts []int16
	for _, r := range late {
		k.add(r.Key.Account, r.Key.Run, r.Key.Ordinal)
		// An attempt that does not fit a smallint is the attempt of no row.
		attempts = append(attempts, int16(min(r.Attempt, math.MaxInt16)))
	}
	b.Queue(readRecords, citusRecords, k.accounts, k.runs, k.ordinals, attempts).Query(func(rows pgx.Rows) error {
		var no int
		var provider string
		var reported *Outcome // by the attempt
		var ended *int16      // the attempt that ended the job
		var settled *bool
		var code *string
		_, err := pgx.ForEachRow(rows, []any{&no, &provider, &reported, &ended, &settled, &code}, func() error {
			r := late[no-1]
			// A run that was not locked does not exist.
			run := l.runs[runKey{r.Key.Account, r.Key.Run}]
			if run == nil || !accepts(r.providers, provider) {
				return nil
			}
			r.record = &record{canceled: run.status == "canceled" && ended == nil}
			switch {
			case reported != nil:
				r.record.outcome = *reported
			// The job is open, or another attempt or no settlement has ended it: this attempt has reported nothing.
			case ended == nil || int(*ended) != r.Attempt || !*settled:
			case code != nil:
				r.record.outcome = Failed
			default:
				r.record.outcome = Completed
			}
			return nil
		})
		return err
	})
}

// A record is what is stored about a job and an attempt that does not hold it.
type record struct {
	outcome  Outcome // that the attempt reported; empty: none
	canceled bool    // with its run, before it was final
}

// lateRenewal returns the reply to a renewal by an attempt that does not hold its job. r is nil if there is no such job
// of the worker's providers.
func lateRenewal(r *record) Reply {
	if r != nil && r.canceled {
		return Reply{State: Canceled}
	}
	return Reply{State: Lost}
}

// lateSettlement returns the reply to a settlement by an attempt that does not hold its job. r is nil if there is no
// such job of the worker's providers. The outcome expired is never recorded, so a late expiry is stale or canceled.
func lateSettlement(r *record, o Outcome) Reply {
	switch {
	// The reply does not reveal whether the job exists.
	case r == nil:
	// The worker repeats a settlement, for example after a lost response.
	case r.outcome == o:
		return Reply{State: Settled}
	case r.outcome == "" && r.canceled:
		return Reply{State: Canceled}
	}
	return Reply{State: Stale}
}
