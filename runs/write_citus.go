package runs

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/store"
)

// insertOnCitus is insertTx on Citus. Each statement writes one table from parameters: what a common table expression returns, Citus
// would send to every server before the next one reads it. So a batch concerns the servers of its accounts only, and a server that
// is away fails no other account.
func (r *Runs) insertOnCitus(ctx context.Context, tx pgx.Tx, batch []*pending) ([]written, error) {
	requests := make([]idempotency.Request, len(batch))
	for i, p := range batch {
		requests[i] = idempotency.Request{Scope: idempotency.Scope{AccountID: p.run.AccountID, Method: p.request.Method, Route: p.request.Route},
			Key: p.request.Key, Hash: p.hash, RunID: p.run.ID, Answer: p.answer}
	}
	ids, err := idempotency.ClaimOnCitus(ctx, tx, requests)
	if err != nil {
		return nil, err
	}
	claimed := make(map[store.ID]bool, len(ids))
	for _, id := range ids {
		claimed[id] = true
	}
	results := make([]written, len(batch))
	var free []*pending
	jobs := 0
	for i, p := range batch {
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
	if jobs <= maxBatchJobs {
		return results, r.countOnCitus(ctx, tx, free)
	}
	return results, r.copyJobs(ctx, tx, batch, results)
}

// countOnCitus is countOrdered on Citus. It notes the unfinished jobs of the accounts.
func (r *Runs) countOnCitus(ctx context.Context, tx pgx.Tx, written []*pending) error {
	type ordered struct{ runs, jobs int64 }
	byAccount := make(map[store.ID]ordered)
	for _, p := range written {
		o := byAccount[p.run.AccountID]
		byAccount[p.run.AccountID] = ordered{o.runs + 1, o.jobs + int64(p.run.TotalJobs)}
	}
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

// now() is the same in all statements of the transaction, also as the default of created_at.
const (
	citusInsertRuns = `
INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
  locale, country, language, total_jobs)
SELECT account_id, id, credential_id, measurement_type, methodology_version, model_ids::text[], question_ids::text[], repetitions, locale,
  country, language, total_jobs
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[], $9::text[], $10::text[],
    $11::text[], $12::integer[])
  AS run (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions, locale, country, language,
    total_jobs)`

	citusInsertModels = `
INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id)
SELECT account_id, unnest(model_ids::text[]), now(), id FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS run (account_id, id, model_ids)`

	citusInsertUsage = `
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::text[])`

	citusInsertJobs = `
INSERT INTO measurement_jobs (account_id, run_id, ordinal)
SELECT account_id, id, generate_series(1, jobs) FROM unnest($1::uuid[], $2::uuid[], $3::integer[]) AS run (account_id, id, jobs)`

	citusCountOrdered = `INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered) VALUES `
	citusOrderedRow   = `$::uuid, date_trunc('month', now(), 'UTC'), $::bigint, $::bigint`

	citusWrittenRuns = `
WITH run AS (SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS run (account_id, id)) `
)
