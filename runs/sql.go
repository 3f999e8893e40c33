package runs

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/store"
)

// writing is a run on its way into the database.
type writing struct {
	order  *Order
	run    *Run
	hash   idempotency.Hash
	answer []byte
}

// key is what concurrent duplicates have in common.
func (w *writing) key() any {
	return [4]string{string(w.run.AccountID[:]), w.order.Method, w.order.Route, w.order.Key}
}

// maxJobsTogether bounds the jobs of the runs that share a statement, so that small runs do not wait for large ones. A
// run with more jobs goes alone, in a lane of its own.
const maxJobsTogether = 5000

// waits says how long a statement waits for locks: for those of its keys, and then for any other; nil: as long as the session.
type waits struct{ keys, others *string }

// A batch waits for a concurrent duplicate's transaction a moment only, so that one locked key does not hold up the others. Its
// run is retried individually then, and waits for the key as long as its client is promised. Batches wait for all other locks
// as long as the session does, because those locks block every run.
var (
	together  = waits{new("20ms"), nil}
	patiently = waits{nil, nil}
)

// insertRuns writes any number of runs with all that belongs to them: the claims of their keys, and for the keys that
// were free the runs, their jobs and their usage. It returns the ids of the runs written.
//
// The settings of its waits ($18 and $19) end with the transaction. The second holds from when all keys are claimed.
//
// The ids of a run's models and questions travel as array literals, because PostgreSQL has no arrays of arrays of
// different lengths.
const insertRuns = insertRunsOnly + `, job AS (
  INSERT INTO measurement_jobs (account_id, run_id, model_no, question_no, repetition)
  SELECT account_id, id, model_no, question_no, repetition
  FROM run, generate_series(1, cardinality(model_ids)) model_no, generate_series(1, cardinality(question_ids)) question_no,
    generate_series(1, repetitions) repetition
)` + usageOfRuns

const insertRunsOnly = `
WITH session AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS wait
), asked AS (
  SELECT asked.* FROM session, unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::uuid[], $7::bytea[], $8::uuid[], $9::text[],
      $10::text[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::text[], $16::text[], $17::integer[])
    AS asked (account_id, method, route, key, request_hash, run_id, answer, credential_id, measurement_type,
      methodology_version, model_ids, question_ids, repetitions, locale, country, language, total_jobs),
    set_config('lock_timeout', COALESCE($18, session.wait), true)
),` + idempotency.Claimed + `,
run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
    repetitions, locale, country, language, total_jobs)
  SELECT account_id, run_id, credential_id, measurement_type, methodology_version, model_ids::text[], question_ids::text[],
    repetitions, locale, country, language, total_jobs
  FROM asked JOIN claimed USING (account_id, run_id),
    (SELECT set_config('lock_timeout', COALESCE($19, (SELECT wait FROM session)), true) AS wait FROM (SELECT count(*) FROM claimed) all_of_them) others
  WHERE others.wait IS NOT NULL
  RETURNING account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions, total_jobs
)`

const usageOfRuns = `, usage AS (
  INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version FROM run
)
SELECT run_id FROM claimed`

// A writer writes runs and tells of each whether its key was free.
type writer func(ctx context.Context, runs []*writing, w waits) ([]bool, error)

// waiting returns the writer as a trip that waits so.
func (write writer) waiting(w waits) func(context.Context, []*writing) ([]bool, error) {
	return func(ctx context.Context, runs []*writing) ([]bool, error) { return write(ctx, runs, w) }
}

// writeSmall writes any number of runs in one statement.
func (r *Runs) writeSmall(ctx context.Context, runs []*writing, w waits) ([]bool, error) {
	return insert(ctx, r.cfg.Pool, insertRuns, runs, w)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func insert(ctx context.Context, db querier, sql string, runs []*writing, w waits) ([]bool, error) {
	n := len(runs)
	accounts, ids, credentials := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	hashes, answers := make([][]byte, n), make([][]byte, n)
	repetitions, jobs := make([]int16, n), make([]int32, n)
	var texts [10][]string
	for i := range texts {
		texts[i] = make([]string, n)
	}
	for i, w := range runs {
		accounts[i], ids[i], credentials[i] = w.run.AccountID, w.run.ID, w.run.CredentialID
		hashes[i], answers[i] = w.hash[:], w.answer
		repetitions[i], jobs[i] = int16(w.run.Repetitions), int32(w.run.TotalJobs)
		for k, text := range [...]string{
			w.order.Method, w.order.Route, w.order.Key, w.run.MeasurementType, w.run.MethodologyVersion,
			arrayLiteral(w.run.ModelIDs), arrayLiteral(w.run.QuestionIDs), w.run.Locale, w.run.Country, w.run.Language,
		} {
			texts[k][i] = text
		}
	}
	rows, err := db.Query(ctx, sql, accounts, texts[0], texts[1], texts[2], hashes, ids, answers, credentials,
		texts[3], texts[4], texts[5], texts[6], repetitions, texts[7], texts[8], texts[9], jobs, w.keys, w.others)
	if err != nil {
		return nil, err
	}
	claimed := make(map[store.ID]bool, n)
	for rows.Next() {
		var id store.ID
		if err := rows.Scan(&id); err != nil {
			rows.Close()
			return nil, err
		}
		claimed[id] = true
	}
	out := make([]bool, n)
	for i := range runs {
		out[i] = claimed[ids[i]]
	}
	return out, rows.Err()
}

// arrayLiteral writes PostgreSQL's text form of a text[], each element quoted.
func arrayLiteral(elements []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		arrayEscapes.WriteString(&b, e)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)
