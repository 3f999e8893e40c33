package runs

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/store"
)

// insertOnCitus is insertTx on Citus. Each statement writes one table from parameters, because Citus would send the
// result of a common table expression to every server. So a batch uses only the servers of its accounts, and a server
// that is unreachable does not fail other accounts.
func (r *Runs) insertOnCitus(ctx context.Context, tx pgx.Tx, batch []*pending) ([]writeResult, error) {
	requests := make([]idempotency.Request, len(batch))
	for i, p := range batch {
		requests[i] = idempotency.Request{Scope: p.request.scope(), Key: p.request.Key, Hash: p.hash, RunID: p.run.ID, Response: p.response}
	}
	// The keys are claimed first, because that waits for other transactions with the same keys.
	ids, err := idempotency.ClaimOnCitus(ctx, tx, requests)
	if err != nil {
		return nil, err
	}
	claimed := make(map[store.ID]bool, len(ids))
	for _, id := range ids {
		claimed[id] = true
	}
	results := make([]writeResult, len(batch))
	var free []*pending
	jobs := 0
	for i, p := range batch {
		// An id was claimed only if the key of its run was free.
		if results[i].written = claimed[p.run.ID]; results[i].written {
			free = append(free, p)
			jobs += p.run.TotalJobs
		}
	}
	if len(free) == 0 {
		return results, nil
	}
	c := newBatchColumns(free)
	var b pgx.Batch
	b.Queue(citusInsertRuns, c.accounts, c.ids, c.credentials, c.types, c.methodologies, c.models, c.questions, c.repetitions, c.locales,
		c.countries, c.languages, c.jobs)
	b.Queue(citusInsertModels, c.accounts, c.ids, c.models)
	b.Queue(citusInsertUsage, c.accounts, c.ids, c.credentials, c.jobs, c.types, c.methodologies)
	if r.cfg.Enqueue != "" {
		b.Queue(citusWrittenRuns+r.cfg.Enqueue, c.accounts, c.ids)
	}
	if jobs <= maxBatchJobs {
		b.Queue(citusInsertJobs, c.accounts, c.ids, c.jobs)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	// The months come last: other runs of the accounts wait for them.
	if jobs <= maxBatchJobs {
		return results, r.countOnCitus(ctx, tx, free)
	}
	return results, r.copyAndCountJobs(ctx, tx, batch, results)
}

// countOnCitus is countOrdered on Citus. It notes the unfinished jobs of the accounts.
func (r *Runs) countOnCitus(ctx context.Context, tx pgx.Tx, runs []*pending) error {
	type ordered struct{ runs, jobs int64 }
	byAccount := make(map[store.ID]ordered)
	for _, p := range runs {
		o := byAccount[p.run.AccountID]
		byAccount[p.run.AccountID] = ordered{o.runs + 1, o.jobs + int64(p.run.TotalJobs)}
	}
	// The statement is not prepared, because its text depends on the number of accounts.
	args := []any{pgx.QueryExecModeExec}
	for _, account := range slices.SortedFunc(maps.Keys(byAccount), store.ID.Compare) {
		args = append(args, account.UUID(), byAccount[account].runs, byAccount[account].jobs)
	}
	rows, err := tx.Query(ctx, citusCountOrdered+store.ValuesOnCitus(len(byAccount), citusOrderedRow)+addOrdered, args...)
	if err != nil {
		return err
	}
	return r.unfinished.read(rows)
}
