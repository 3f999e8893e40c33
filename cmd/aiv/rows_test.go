package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
	"aiv/store/storetest"
)

// catalogRows are a plan, and a catalog of two models and a question. The methodology is in the migrations.
var catalogRows = []string{
	`INSERT INTO plans (code, features) VALUES ('plan', '{api_access}')`,
	`INSERT INTO providers (code, name) VALUES ('p', 'P')`,
	`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
	SELECT id, id, 'p', id, 'active', '{grounded}', true FROM unnest('{a,b}'::text[]) AS id`,
	`INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ('q', '?', 'it', 'IT', 't', '{x,y}', 'active')`,
	`INSERT INTO question_tags (tag, question_id) SELECT unnest(tags), id FROM questions`,
}

// customerRows are the account $1 and its key.
const customerRows = `
INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'A', 'plan');
INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
  VALUES (gen_random_uuid(), $1, 'key', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`

// finalRun is a run of the account $1 with four jobs, of which one has failed. It was created some days ago.
const finalRun = `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs, jobs_completed, jobs_failed, created_at, started_at, finished_at)
  SELECT account_id, gen_random_uuid(), id, 'partial', 'grounded', 'AIVM-1.0', '{a,b}',
    '{q,own}', 1, 'it-IT', 'IT', 'it', 4, 3, 1, at, at, at
  FROM credentials, (SELECT now() - make_interval(days => %d) AS at) t WHERE account_id = $1`

// openRun is a run of the account $1 that waits.
const openRun = `
INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
    question_ids, repetitions, locale, country, language, total_jobs)
  SELECT account_id, gen_random_uuid(), id, 'grounded', 'AIVM-1.0', '{a}',
    '{q}', 3, 'it-IT', 'IT', 'it', 3 FROM credentials WHERE account_id = $1`

// rowsOfRuns are what belongs to the runs of the account $1, with an own question, a schedule and a brand.
const rowsOfRuns = `
INSERT INTO api_rate_limit_buckets (account_id, credential_id, window_start, used, granted, rate_limit)
  SELECT account_id, id, '2026-11-01T00:00Z', 60, 1, 60 FROM credentials WHERE account_id = $1;
INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
  VALUES ($1, 'own', '?', 'it', 'IT', 't', '{x,y}', 'active');
INSERT INTO own_question_tags (account_id, tag, question_id) SELECT account_id, unnest(tags), id FROM own_questions WHERE account_id = $1;
INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id)
  SELECT account_id, unnest(model_ids), created_at, id FROM measurement_runs WHERE account_id = $1;
INSERT INTO measurement_jobs (account_id, run_id, ordinal)
  SELECT account_id, id, generate_series(1, total_jobs) FROM measurement_runs WHERE account_id = $1;
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
  SELECT account_id, id, n, 1, true, created_at, created_at,
    CASE WHEN n < 4 THEN '{"text":"Kovalt.","citations":[{"url":"https://a.example/"}]}' END,
    CASE WHEN n = 4 THEN 'e' END, CASE WHEN n = 4 THEN '' END
  FROM measurement_runs, generate_series(1, jobs_completed + jobs_failed) n WHERE account_id = $1;
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version, created_at
  FROM measurement_runs WHERE account_id = $1;
INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed)
  SELECT account_id, date_trunc('month', created_at, 'UTC'), 1, total_jobs, jobs_completed, jobs_failed
  FROM measurement_runs WHERE account_id = $1;
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
  SELECT account_id, 'POST', '/v1/runs', status, sha256(''), id, '', created_at FROM measurement_runs WHERE account_id = $1;
INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT account_id, id, 'run.' || status, id, '{}' FROM measurement_runs WHERE account_id = $1 AND finished_at IS NOT NULL;
INSERT INTO schedules (account_id, id, name, status, cadence, at_minute, time_zone, model_ids, question_ids, repetitions,
    measurement_type, locale, country, language, min_change, next_at, last_due_at, last_run_id, credential_id, created_at, updated_at)
  SELECT account_id, gen_random_uuid(), 'daily', 'active', 'daily', 0, 'UTC', model_ids, question_ids, repetitions,
    'grounded', 'it-IT', 'IT', 'it', 1000, now() + interval '1 day', now(), id, credential_id, now(), now()
  FROM measurement_runs WHERE account_id = $1 AND finished_at IS NOT NULL;
INSERT INTO schedule_occurrences (account_id, schedule_id, due_at, last_due_at, count, status, run_id, created_at)
  SELECT account_id, id, last_due_at, last_due_at, 1, 'created', last_run_id, last_due_at FROM schedules WHERE account_id = $1;
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  VALUES ($1, $1, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active');
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) VALUES ($1, 1, now(), now());
INSERT INTO visibility_backlog (account_id, run_id) SELECT account_id, id FROM measurement_runs WHERE account_id = $1`

// otherRows are rows in the other tables of the account $1.
const otherRows = `
INSERT INTO job_arrivals (account_id, run_id) SELECT account_id, id FROM measurement_runs WHERE account_id = $1 AND status = 'queued';
INSERT INTO job_attempts (account_id, run_id, ordinal, attempt, outcome)
  SELECT account_id, id, 1, 1, 'retry' FROM measurement_runs WHERE account_id = $1 AND status = 'partial';
INSERT INTO job_turns (account_id, provider_code, turn) VALUES ($1, 'p', 1);
INSERT INTO own_question_accounts (account_id) VALUES ($1);
INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
  SELECT account_id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', id, created_at FROM measurement_runs WHERE account_id = $1;
INSERT INTO recommendations (account_id, id, type, category, title, summary, priority, status, model_ids, question_ids,
    run_id, created_at, updated_at)
  SELECT account_id, id, 't', 'social', 'r', 'r', 'low', 'done', '{}', '{}',
    id, created_at, created_at FROM measurement_runs WHERE account_id = $1;
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) VALUES ($1, $1, 1, 'https://a.example', '', '{*}');
INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT account_id, id, 'alert.opened', id, '{}' FROM measurement_runs WHERE account_id = $1 AND status = 'queued';
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT account_id, id, account_id FROM events WHERE account_id = $1;
INSERT INTO webhook_queues (account_id, wake_at)
  SELECT account_id, min(next_attempt_at) FROM webhook_deliveries WHERE account_id = $1 GROUP BY account_id`

// insert inserts rows of an account, and counts the three answers of its final run.
func insert(t *testing.T, pool *pgxpool.Pool, account store.ID, rows ...string) {
	t.Helper()
	for _, sql := range strings.Split(strings.Join(rows, ";\n"), ";\n") { // a statement with arguments is sent by itself
		_, err := pool.Exec(t.Context(), sql, account)
		must(t, err)
	}
	if n, err := counting.New(pool, nil).Recount(t.Context()); n != 3 || err != nil {
		t.Fatalf("%d answers are counted (%v), want 3", n, err)
	}
}

// consistent returns a small database in which every invariant holds: it has the account A with a final run of two
// models, a shared question and an own one.
func consistent(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := storetest.New(t)
	storetest.Exec(t, pool, catalogRows...)
	insert(t, pool, store.NewID(), customerRows, fmt.Sprintf(finalRun, 0), rowsOfRuns)
	return pool
}

// customers makes the catalog and the accounts A and B, which have rows in every table. Each has a run that ended some
// days ago and an open one, which stays in the backlog. The keys were revoked an hour ago, so that an erasure waits for
// nothing.
func customers(t *testing.T, pool *pgxpool.Pool, daysOfA, daysOfB int) (a, b store.ID) {
	t.Helper()
	storetest.Exec(t, pool, catalogRows...)
	a, b = store.NewID(), store.NewID()
	insert(t, pool, b, customerRows, fmt.Sprintf(finalRun, daysOfB), openRun, rowsOfRuns, otherRows)
	storetest.Exec(t, pool, `UPDATE accounts SET name = 'B'`)
	insert(t, pool, a, customerRows, fmt.Sprintf(finalRun, daysOfA), openRun, rowsOfRuns, otherRows)
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = now() - interval '1 hour'`)
	return a, b
}
