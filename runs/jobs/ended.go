package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"aiv/runs/answers"
	"aiv/store"
)

// An Ended job has an answer or an error.
type Ended struct {
	Key    Key
	Answer *answers.Answer // nil: it failed, or its answer is not stored any more

	Prepared any // by Config.Prepare; nil: nothing
}

// ended returns the jobs that the ledger ends.
func (l *ledger) ended() []Ended {
	all := make([]Ended, len(l.results))
	for i, r := range l.results {
		all[i] = Ended{r.key, r.answer, r.prepared}
	}
	return all
}

// prepare calls Config.Prepare with the settlements that have answers.
func (d *Dispatcher) prepare(settlements []Settlement) {
	if d.cfg.Prepare == nil {
		return
	}
	var answered []*Settlement
	var jobs []Ended
	for i := range settlements {
		if s := &settlements[i]; s.Answer != nil {
			answered, jobs = append(answered, s), append(jobs, Ended{Key: s.Key, Answer: s.Answer})
		}
	}
	for i, prepared := range d.cfg.Prepare(jobs) {
		// Prepare returns a value for each job, in the order of jobs.
		answered[i].prepared = prepared
	}
}

// answersAtATime bounds the answers that EachAnswer has in memory.
const answersAtATime = 100

// EachAnswer calls f with the stored answers of jobs of a run, answersAtATime or fewer in each call. It leaves out jobs
// without a stored answer.
func EachAnswer(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, f func([]Ended) error) error {
	for len(ordinals) > 0 {
		n := min(len(ordinals), answersAtATime)
		found, err := readAnswers(ctx, db, account, run, ordinals[:n])
		if err != nil {
			return err
		}
		if err := f(found); err != nil {
			return err
		}
		ordinals = ordinals[n:]
	}
	return nil
}

// readAnswers reads and decodes the stored answers of a run's jobs, in order.
func readAnswers(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32) ([]Ended, error) {
	decode := func(row pgx.CollectableRow) (e Ended, err error) {
		var stored string
		e.Key = Key{Account: account, Run: run}
		if err := row.Scan(&e.Key.Ordinal, &stored); err != nil {
			return e, err
		}
		e.Answer, err = answers.Decode(stored)
		return e, err
	}
	return store.Collect(ctx, db, decode, `
SELECT ordinal, answer FROM job_results
WHERE account_id = $1 AND run_id = $2 AND ordinal = ANY ($3) AND answer IS NOT NULL ORDER BY ordinal`, account, run, ordinals)
}

// An EndedJob is a job that has ended, without its answer.
type EndedJob struct {
	Ordinal int32
	Failed  bool
	Stored  bool // its answer is stored
}

// ReadEnded returns the jobs of a run, from after+1 to last, that have ended with an answer or an error.
func ReadEnded(ctx context.Context, db store.Querier, account, run store.ID, after, last int32) ([]EndedJob, error) {
	return store.Collect(ctx, db, pgx.RowToStructByPos[EndedJob], `
SELECT ordinal, error_code IS NOT NULL, answer IS NOT NULL FROM job_results
WHERE account_id = $1 AND run_id = $2 AND ordinal > $3 AND ordinal <= $4 AND NOT canceled ORDER BY ordinal`, account, run, after, last)
}
