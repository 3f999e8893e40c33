package runs

import "aiv/idempotency"

// insertRuns writes any number of runs with all that belongs to them: it claims their idempotency keys and, for the
// keys that were free, writes the runs and every row that follows from a run. New appends Config.Enqueue and a result.
//
// The ids of a run's models and questions are array literals, because PostgreSQL has no arrays of arrays of different
// lengths. Rows of account_months are locked in the order of accounts, before jobs and usage are written, because the
// result reads month. Other runs of these accounts wait for the locks.
const insertRuns = insertRunsOnly + `, job AS (
  INSERT INTO measurement_jobs (account_id, run_id, ordinal)
  SELECT account_id, id, ordinal FROM run, generate_series(1, total_jobs) ordinal
)` + insertUsage + insertMonths

// insertRunsOnly claims the keys and writes the runs, with a row for each model by which lists find them.
const insertRunsOnly = `
WITH requested AS (
  SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::uuid[], $7::bytea[], $8::uuid[], $9::text[],
      $10::text[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::text[], $16::text[], $17::integer[])
    AS requested (account_id, method, route, key, request_hash, run_id, answer, credential_id, measurement_type,
      methodology_version, model_ids, question_ids, repetitions, locale, country, language, total_jobs)
),` + idempotency.Claimed + `,
run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
    repetitions, locale, country, language, total_jobs)
  SELECT account_id, run_id, credential_id, measurement_type, methodology_version, model_ids::text[], question_ids::text[],
    repetitions, locale, country, language, total_jobs
  FROM requested JOIN claimed USING (account_id, run_id)
  RETURNING account_id, id, credential_id, measurement_type, methodology_version, model_ids, total_jobs, created_at
), model AS (
  INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id)
  SELECT account_id, unnest(model_ids), created_at, id FROM run
)`

// insertUsage and insertMonths are parts of insertRuns. insertLargeRuns has only the first.
const insertUsage = `, usage AS (
  INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version FROM run
)`

const insertMonths = `, month AS (
  INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered)
  SELECT account_id, date_trunc('month', min(created_at), 'UTC'), count(*), sum(total_jobs) FROM run
  GROUP BY account_id ORDER BY account_id` + addOrdered + ` AS unfinished
)`

// insertLargeRuns is insertRuns without the jobs, which are copied, and without the months: countOrdered writes those
// at the end, so that no other run of the account waits while jobs are copied.
const insertLargeRuns = insertRunsOnly + insertUsage

// countOrdered is insertMonths for runs whose jobs were copied; $1 are their accounts and $2 their jobs.
const countOrdered = `
INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered)
SELECT account_id, date_trunc('month', now(), 'UTC'), count(*), sum(jobs) FROM unnest($1::uuid[], $2::integer[]) AS r (account_id, jobs)
GROUP BY account_id ORDER BY account_id` + addOrdered

// addOrdered adds to an existing month, and returns the unfinished jobs of the account among the jobs of that month.
const addOrdered = `
ON CONFLICT (account_id, month) DO UPDATE SET runs = m.runs + excluded.runs, jobs_ordered = m.jobs_ordered + excluded.jobs_ordered
RETURNING account_id, jobs_ordered - jobs_completed - jobs_failed - jobs_canceled`

// The ids of the runs written, with the unfinished jobs of their accounts in the current month.
const (
	returnWritten = `
SELECT run_id, unfinished FROM claimed JOIN month USING (account_id)`
	returnLargeWritten = `
SELECT run_id, NULL::bigint FROM claimed`
)

// The statements of lockMonths and countFinished, in the order in which they run. Each is separate, so that it sees
// what was committed before the lock was granted. $2 is maxUsed. A month above it is not locked: usage never decreases,
// so no run can fit. Therefore a refusal by the quota writes nothing.
const (
	// A month must have a row before it can be locked. A quota below the size of the run needs none.
	beginMonths = `
INSERT INTO account_months (account_id, month, runs, jobs_ordered)
SELECT account_id, date_trunc('month', now(), 'UTC'), 0, 0 FROM unnest($1::uuid[], $2::bigint[]) AS k (account_id, most) WHERE most >= 0
ON CONFLICT DO NOTHING`

	lockMonthRows = `
SELECT FROM account_months
WHERE account_id = ANY ($1) AND month = date_trunc('month', now(), 'UTC') AND jobs_ordered <= ($2::bigint[])[array_position($1, account_id)]
ORDER BY account_id FOR NO KEY UPDATE`

	// readUsed counts the jobs of running runs as unfinished, because months count the jobs of a run when it ends.
	readUsed = `
SELECT account_id, COALESCE(sum(jobs_ordered) FILTER (WHERE month = date_trunc('month', now(), 'UTC')), 0)::bigint,
  sum(jobs_ordered - jobs_completed - jobs_failed - jobs_canceled)::bigint
FROM account_months WHERE account_id = ANY ($1) GROUP BY account_id`

	// takenKeys returns the positions, from 1, of the keys that have a record. OFFSET 0 makes it look up each key.
	takenKeys = `
SELECT position::integer FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS k (account_id, method, route, key, position)
WHERE EXISTS (
  SELECT FROM idempotency_records i WHERE (i.account_id, i.method, i.route, i.key) = (k.account_id, k.method, k.route, k.key) OFFSET 0)`

	// readUnfinished counts the unfinished jobs of all months, without jobs of running runs that are completed or
	// failed.
	readUnfinished = `
SELECT account_id, sum(jobs)::bigint
FROM (
  SELECT account_id, jobs_ordered - jobs_completed - jobs_failed - jobs_canceled AS jobs FROM account_months WHERE account_id = ANY ($1)
  UNION ALL
  SELECT account_id, - jobs_completed - jobs_failed FROM measurement_runs WHERE account_id = ANY ($1) AND status = 'running') counted
GROUP BY account_id`
)

// columns are in the order of the fields of Run, and of decoder.row. columnsOfAccount are for a query whose first
// argument is the account, so they leave out AccountID, the first field. columnsOfAccounts are for a query whose first
// argument is an array of accounts: Citus does not derive from r.account_id which shards of the queue are concerned, and
// would ask all servers. finalColumns are the columns of runs that are final.
var (
	columns           = `r.account_id, ` + columnsWith(RunningJobs("r.account_id"))
	columnsOfAccount  = columnsWith(RunningJobs("$1"))
	columnsOfAccounts = `r.account_id, ` + columnsWith(RunningJobs("r.account_id AND q.account_id = ANY ($1)"))
	finalColumns      = `r.account_id, ` + columnsWith("0")
)

// columnsWith returns the columns of Run except the account, with the given SQL for the number of running jobs.
func columnsWith(runningJobs string) string {
	return `
r.id, r.status, r.measurement_type, r.methodology_version, r.model_ids, r.question_ids, r.repetitions,
r.locale, r.country, r.language, r.total_jobs, ` + runningJobs + `, r.jobs_completed, r.jobs_failed, r.jobs_canceled, r.created_at,
r.started_at, r.finished_at`
}

// RunningJobs returns the SQL for the number of jobs of run r that workers have; account is the SQL for its account, which
// a further condition on the rows q of the queue may follow.
//
// The number is not a column of the run, because claims would wait for the row, which each settlement changes. A claim
// changes job_queue instead, which has the jobs that no worker has had.
func RunningJobs(account string) string {
	return `
CASE WHEN r.status = 'running' THEN r.total_jobs - r.jobs_returned - r.jobs_completed - r.jobs_failed - ` + freshJobs(account) + ` ELSE 0 END`
}

// freshJobs returns the SQL for the number of jobs of run r that no worker has had, once the run has started. As in
// selectRun, only the primary key can serve it.
func freshJobs(account string) string {
	return `(
  SELECT COALESCE(sum(last_ordinal - next_ordinal + 1), 0)::integer FROM (
    SELECT * FROM job_queue q WHERE q.account_id = ` + account + ` AND q.run_id >= r.id AND q.run_id <= r.id
    ORDER BY q.account_id, q.run_id, q.model_no) q)`
}

var (
	// selectRuns fits a query whose first argument is the account.
	selectRuns = `SELECT ` + columnsOfAccount + ` FROM measurement_runs r`

	// selectRunsByModel starts from the rows of one model, which also contain the account and the order. It fits a
	// query whose first argument is the account.
	selectRunsByModel = `SELECT ` + columnsOfAccount + ` FROM measurement_run_models m
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r
  WHERE r.account_id = $1 AND r.id >= m.run_id AND r.id <= m.run_id
  ORDER BY r.account_id, r.id LIMIT 1) r`

	// selectRunsByID looks up the ids in $2, each through the primary key. It fits a query whose first two arguments
	// are the account and the ids.
	selectRunsByID = `SELECT ` + columnsOfAccount + ` FROM unnest($2::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE r.account_id = $1 AND r.id >= wanted.id AND r.id <= wanted.id
  ORDER BY r.account_id, r.id LIMIT 1) r`

	// selectRun writes the key as a range in the primary key's order, so that only the primary key can serve it. Other
	// indexes also contain the account and the id; for an equality the planner may choose them while the table is
	// small, and the session keeps the plan.
	selectRun = selectRuns + `
WHERE r.account_id = $1 AND r.id >= $2 AND r.id <= $2 ORDER BY r.account_id, r.id LIMIT 1`

	// selectRunsByKey looks up the runs of the accounts in $1 with the ids in $2.
	selectRunsByKey = `SELECT ` + columns + ` FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (account_id, id, no)
CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE r.account_id = k.account_id AND r.id >= k.id AND r.id <= k.id
  ORDER BY r.account_id, r.id LIMIT 1) r ORDER BY k.no`

	// cancelRun calls a function of the database, so that aiv serve needs no privilege to update runs.
	cancelRun = `SELECT ` + finalColumns + ` FROM cancel_run($1, $2) r`
)

// addFinished adds the jobs of finished runs to the months in which the runs were created.
const addFinished = `
INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed, jobs_canceled)
SELECT account_id, date_trunc('month', created_at, 'UTC'), 0, 0, sum(completed), sum(failed), sum(canceled)
FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[], $4::integer[], $5::integer[]) AS f (account_id, created_at, completed, failed, canceled)
GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (account_id, month) DO UPDATE SET jobs_completed = m.jobs_completed + excluded.jobs_completed,
  jobs_failed = m.jobs_failed + excluded.jobs_failed, jobs_canceled = m.jobs_canceled + excluded.jobs_canceled`

// monthlyUsage adds the jobs of running runs, which are counted on the runs, to the totals of the months.
const monthlyUsage = `
WITH running AS (
  SELECT account_id, date_trunc('month', created_at, 'UTC') AS month, sum(jobs_completed) AS completed, sum(jobs_failed) AS failed
  FROM measurement_runs WHERE status = 'running' AND ($1::uuid IS NULL OR account_id = $1) GROUP BY 1, 2
)
SELECT m.account_id, a.name, m.month, m.runs, m.jobs_ordered, m.jobs_completed + COALESCE(r.completed, 0), m.jobs_failed + COALESCE(r.failed, 0),
  m.jobs_canceled
FROM account_months m JOIN accounts a ON a.id = m.account_id LEFT JOIN running r ON r.account_id = m.account_id AND r.month = m.month
WHERE ($1::uuid IS NULL OR m.account_id = $1) AND m.month >= COALESCE($2::timestamptz, '-infinity') AND m.month < COALESCE($3::timestamptz, 'infinity')
ORDER BY m.month, a.name, m.account_id`

// accountMonth is monthlyUsage of one account in one month. It adds a month in UTC, because the lengths of months
// differ between the session's time zone and UTC.
const accountMonth = `
SELECT w.month, COALESCE(m.runs, 0), COALESCE(m.jobs_ordered, 0), COALESCE(m.jobs_completed, 0) + open.completed,
  COALESCE(m.jobs_failed, 0) + open.failed, COALESCE(m.jobs_canceled, 0)
FROM (SELECT date_trunc('month', COALESCE($2::timestamptz, now()), 'UTC') AS month) w
LEFT JOIN account_months m ON m.account_id = $1 AND m.month = w.month
CROSS JOIN LATERAL (
  SELECT COALESCE(sum(jobs_completed), 0)::bigint AS completed, COALESCE(sum(jobs_failed), 0)::bigint AS failed FROM measurement_runs r
  WHERE r.account_id = $1 AND r.status = 'running' AND r.created_at >= w.month AND r.created_at < (w.month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC') open`

// readQueue reads open runs only, through their partial index.
var readQueue = `
SELECT count(*), COALESCE(sum(CASE status WHEN 'queued' THEN total_jobs ELSE jobs_returned + ` + freshJobs("r.account_id") + ` END), 0), min(created_at),
  extract(epoch FROM now() - min(created_at))::double precision
FROM measurement_runs r WHERE status IN ('queued', 'running')`

// readBacklog counts the open runs up to $1, and returns the age of the oldest in seconds.
const readBacklog = `
SELECT (SELECT count(*) FROM (SELECT created_at FROM measurement_runs WHERE status IN ('queued', 'running') ORDER BY created_at LIMIT $1) open),
  COALESCE((SELECT extract(epoch FROM now() - created_at) FROM measurement_runs WHERE status IN ('queued', 'running')
    ORDER BY created_at LIMIT 1), 0)::double precision`

// Statements for operators, who read the runs of all accounts.
var (
	// selectRecent reads the newest runs of each account through its list.
	selectRecent = `
SELECT ` + columns + ` FROM accounts a CROSS JOIN LATERAL (
  SELECT * FROM measurement_runs r WHERE r.account_id = a.id AND ($2::text[] IS NULL OR r.status = ANY ($2))
  ORDER BY r.created_at DESC, r.id DESC LIMIT $3) r
WHERE $1::uuid IS NULL OR a.id = $1 ORDER BY r.created_at DESC, r.id DESC LIMIT $3`

	// findRun starts from the accounts, because the primary key of runs begins with the account.
	findRun = `SELECT ` + columns + ` FROM accounts a JOIN measurement_runs r ON r.account_id = a.id AND r.id = $1`
)
