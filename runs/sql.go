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

// maxJobsTogether bounds the jobs of the runs that share a statement, so that small runs do not wait for large ones. A
// run with more jobs goes alone, in a lane of its own.
const maxJobsTogether = 5000

// waitTogether is how long a statement of several runs waits for a lock. That of one waits as long as the session does.
const waitTogether = "200ms"

// insertRuns writes any number of runs with all that belongs to them: the claims of their keys, and for the keys that
// were free the runs, their jobs and their usage. It returns the ids of the runs written.
//
// A run alone waits for a twin's transaction as long as its client is promised; several together wait a moment only, and
// go apart, so that one stuck key does not hold up the others. The setting ends with the transaction.
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
WITH asked AS (
  SELECT asked.* FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::uuid[], $7::bytea[], $8::uuid[], $9::text[],
      $10::text[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::text[], $16::text[], $17::integer[])
    AS asked (account_id, method, route, key, request_hash, run_id, answer, credential_id, measurement_type,
      methodology_version, model_ids, question_ids, repetitions, locale, country, language, total_jobs),
    set_config('lock_timeout', COALESCE($18, current_setting('lock_timeout')), true)
),` + idempotency.Claimed + `,
run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
    repetitions, locale, country, language, total_jobs)
  SELECT account_id, run_id, credential_id, measurement_type, methodology_version, model_ids::text[], question_ids::text[],
    repetitions, locale, country, language, total_jobs
  FROM asked JOIN claimed USING (account_id, run_id)
  RETURNING account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions, total_jobs
)`

const usageOfRuns = `, usage AS (
  INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version FROM run
)
SELECT run_id FROM claimed`

// write is a trip of the lane of small runs: it tells of each run whether its key was free.
func (r *Runs) write(ctx context.Context, runs []*writing) ([]bool, error) {
	return insert(ctx, r.cfg.Pool, insertRuns, runs)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func insert(ctx context.Context, db querier, sql string, runs []*writing) ([]bool, error) {
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
	var wait *string
	if n > 1 {
		wait = new(waitTogether)
	}
	rows, err := db.Query(ctx, sql, accounts, texts[0], texts[1], texts[2], hashes, ids, answers, credentials,
		texts[3], texts[4], texts[5], texts[6], repetitions, texts[7], texts[8], texts[9], jobs, wait)
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
