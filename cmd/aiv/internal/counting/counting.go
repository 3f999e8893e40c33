// Package counting connects what package visibility counts to the packages that it does not import: the answers of jobs
// and the texts of questions. It owns no table.
package counting

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
)

// New returns a Counter. pool and outage are for what it does in the background; outage may be nil.
func New(pool *pgxpool.Pool, outage *store.Outage) *visibility.Counter {
	return visibility.NewCounter(config(pool, outage))
}

// Invariants returns the invariants of facts.
func Invariants() []store.Invariant { return visibility.NewCounter(config(nil, nil)).Invariants() }

// config passes functions of packages jobs and catalog to package visibility, which does not import jobs.
func config(pool *pgxpool.Pool, outage *store.Outage) visibility.Config {
	return visibility.Config{
		Pool: pool, Outage: outage, Questions: catalog.QuestionTexts,
		Answers: func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]visibility.Job) error) error {
			return jobs.EachAnswer(ctx, db, account, run, ordinals, func(found []jobs.Ended) error { return each(Jobs(found)) })
		},
		Ended: func(ctx context.Context, db store.Querier, account, run store.ID, after, last int32) ([]visibility.EndedJob, error) {
			ended, err := jobs.ReadEnded(ctx, db, account, run, after, last)
			all := make([]visibility.EndedJob, len(ended))
			for i := range ended {
				// The types have the same fields; a difference would not compile.
				all[i] = visibility.EndedJob(ended[i])
			}
			return all, err
		},
	}
}

// Count returns the function by which a dispatcher has jobs counted in the transactions that end them.
func Count(c *visibility.Counter) func(context.Context, store.Tx, *pgx.Batch, []jobs.Ended) error {
	return func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
		return c.Count(ctx, tx, b, Jobs(ended))
	}
}

// Prepare returns the function by which a dispatcher has answers matched before the transactions that end their jobs.
func Prepare(c *visibility.Counter) func([]jobs.Ended) []any {
	return func(ended []jobs.Ended) []any {
		all := make([]any, len(ended))
		for i, p := range c.Prepare(Jobs(ended)) {
			// A nil p becomes an any that is not nil. Jobs therefore tests the pointer.
			all[i] = p
		}
		return all
	}
}

// Jobs returns ended jobs as package visibility takes them.
func Jobs(ended []jobs.Ended) []visibility.Job {
	all := make([]visibility.Job, len(ended))
	for i := range ended {
		e := &ended[i]
		j := visibility.Job{Account: e.Key.Account, Run: e.Key.Run, Ordinal: e.Key.Ordinal}
		// Prepare has converted a prepared answer; any other one is converted now.
		if j.Prepared, _ = e.Prepared.(*visibility.Prepared); j.Prepared != nil {
			j.Answer = j.Prepared.Answer
		} else {
			j.Answer = answer(e.Answer)
		}
		all[i] = j
	}
	return all
}

// answer returns what is counted of an answer, or nil for a job without an answer.
func answer(a *answers.Answer) *visibility.Answer {
	if a == nil {
		return nil
	}
	counted := &visibility.Answer{Text: a.Text, Version: a.ModelVersion, Searched: a.Searched, Truncated: a.Truncated}
	counted.Citations = slices.Grow(counted.Citations, len(a.Citations))
	for i := range a.Citations {
		counted.Cite(a.Citations[i].URL, a.Citations[i].Title)
	}
	return counted
}
