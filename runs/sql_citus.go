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

	citusCountOrdered = `INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered) VALUES `
	citusOrderedRow   = `$::uuid, date_trunc('month', now(), 'UTC'), $::bigint, $::bigint`

	citusWrittenRuns = `
WITH run AS (SELECT * FROM unnest($1::uuid[], $2::uuid[]) AS run (account_id, id)) `
)
