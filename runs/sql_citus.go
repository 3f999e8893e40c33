package runs

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

	// citusCountOrdered is followed by a citusOrderedRow for each account (store.ValuesOnCitus), and by addOrdered.
	citusCountOrdered = `INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered) VALUES `
	citusOrderedRow   = `$::uuid, date_trunc('month', now(), 'UTC'), $::bigint, $::bigint`

	// citusWrittenRuns precedes Config.Enqueue, which reads from run.
	citusWrittenRuns = `
WITH run AS (SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS run (account_id, id)) `
)

// citusLockMonthRows is lockMonthRows on Citus, which supports SELECT FOR UPDATE of one account only. Transactions
// may lock the months of several accounts in different orders; Citus ends one of two that wait for each other.
const citusLockMonthRows = `
UPDATE account_months SET runs = runs
WHERE account_id = ANY ($1) AND month = date_trunc('month', now(), 'UTC') AND jobs_ordered <= ($2::bigint[])[array_position($1, account_id)]`

// citusTakenKeys is takenKeys on Citus, which supports no correlated subquery beside unnest, and does not derive
// from the join which shards are concerned.
const citusTakenKeys = `
SELECT position::integer FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS k (account_id, method, route, key, position)
JOIN idempotency_records i ON i.account_id = k.account_id AND i.method = k.method AND i.route = k.route AND i.key = k.key
WHERE i.account_id = ANY ($1)`

// citusRunsByKey is selectRunsByKey on Citus, which cannot read rows of several accounts one by one.
var citusRunsByKey = `SELECT ` + columnsOfAccounts + `
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (account_id, id, no)
JOIN measurement_runs r ON r.account_id = k.account_id AND r.id = k.id WHERE r.account_id = ANY ($1) ORDER BY k.no`

// citusRecent is selectRecent on Citus, which supports no LIMIT for each account. Without an account it reads all
// runs.
var citusRecent = `
SELECT ` + columns + ` FROM measurement_runs r
WHERE ($1::uuid IS NULL OR r.account_id = $1) AND ($2::text[] IS NULL OR r.status = ANY ($2))
ORDER BY r.created_at DESC, r.id DESC LIMIT $3`
