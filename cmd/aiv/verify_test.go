package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
	"aiv/store/storetest"
)

// consistentRows is a small database in which every invariant holds: a final run of 2 models, a shared question and an
// own one.
const consistentRows = `
INSERT INTO plans (code, features) VALUES ('plan', '{api_access}');
INSERT INTO accounts (id, name, plan_code) VALUES ('00000000-0000-7000-8000-000000000001', 'A', 'plan');
INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES
  ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'key', 'aiv_live_00000000', sha256('key'), '{}');
INSERT INTO api_rate_limit_buckets (account_id, credential_id, window_start, used, granted, rate_limit)
  SELECT account_id, id, '2026-11-01T00:00Z', 60, 1, 60 FROM credentials;
INSERT INTO providers (code, name) VALUES ('p', 'P');
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
  SELECT id, id, 'p', id, 'active', '{grounded}', true FROM unnest('{a,b}'::text[]) AS id;
INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ('q', '?', 'it', 'IT', 't', '{x,y}', 'active');
INSERT INTO question_tags (tag, question_id) SELECT unnest(tags), id FROM questions;
INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
  SELECT id, 'own', '?', 'it', 'IT', 't', '{x,y}', 'active' FROM accounts;
INSERT INTO own_question_tags (account_id, tag, question_id) SELECT account_id, unnest(tags), id FROM own_questions;
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, jobs_completed, jobs_failed, started_at, finished_at)
  SELECT account_id, '00000000-0000-7000-8000-000000000003', id, 'partial', 'grounded', 'AIVM-1.0', '{a,b}', '{q,own}', 1,
    'it-IT', 'IT', 'it', 4, 3, 1, now(), now() FROM credentials;
INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id) SELECT account_id, unnest(model_ids), created_at, id FROM measurement_runs;
INSERT INTO measurement_jobs (account_id, run_id, ordinal) SELECT account_id, id, generate_series(1, total_jobs) FROM measurement_runs;
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
  SELECT account_id, id, n, 1, true, now(), now(), CASE WHEN n < 4 THEN '{"text":"Kovalt.","citations":[{"url":"https://a.example/"}]}' END,
    CASE WHEN n = 4 THEN 'e' END, CASE WHEN n = 4 THEN '' END
  FROM measurement_runs, generate_series(1, total_jobs) n;
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version, created_at FROM measurement_runs;
INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed)
  SELECT account_id, date_trunc('month', created_at, 'UTC'), 1, total_jobs, jobs_completed, jobs_failed FROM measurement_runs;
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
  SELECT account_id, 'POST', '/v1/runs', 'key', sha256(''), id, '', created_at FROM measurement_runs;
INSERT INTO events (account_id, id, type, subject_id, data) SELECT account_id, id, 'run.' || status, id, '{}' FROM measurement_runs;
INSERT INTO schedules (account_id, id, name, status, cadence, at_minute, time_zone, model_ids, question_ids, repetitions, measurement_type, locale,
    country, language, min_change, next_at, last_due_at, last_run_id, credential_id, created_at, updated_at)
  SELECT account_id, '00000000-0000-7000-8000-000000000004', 'daily', 'active', 'daily', 0, 'UTC', model_ids, question_ids, repetitions, 'grounded', 'it-IT',
    'IT', 'it', 1000, now() + interval '1 day', now(), id, credential_id, now(), now() FROM measurement_runs;
INSERT INTO schedule_occurrences (account_id, schedule_id, due_at, last_due_at, count, status, run_id, created_at)
  SELECT account_id, id, last_due_at, last_due_at, 1, 'created', last_run_id, last_due_at FROM schedules;
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  SELECT id, id, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active' FROM accounts;
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) SELECT id, 1, now(), now() FROM accounts;
INSERT INTO visibility_backlog (account_id, run_id) SELECT account_id, id FROM measurement_runs;`

// pendingDelivery are statements that write a delivery to an enabled endpoint.
const pendingDelivery = `INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) SELECT id, id, 1, 'https://a', '', '{*}' FROM accounts;
INSERT INTO events (account_id, id, type, subject_id, data) SELECT id, id, 'webhook.test', id, '{}' FROM accounts;
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT id, id, id FROM accounts`

// consistent returns a database with consistentRows, whose answers are counted, after a statement.
func consistent(t *testing.T, sql string) *pgxpool.Pool {
	t.Helper()
	pool := storetest.New(t)
	storetest.Exec(t, pool, consistentRows)
	if n, err := counting.New(pool).Recount(t.Context()); n != 3 || err != nil {
		t.Fatalf("%d answers are counted (%v), want 3", n, err)
	}
	storetest.Exec(t, pool, strings.Split(sql, ";\n")...) // a cluster takes one statement at a time
	return pool
}

// TestVerifyFindsEachBrokenInvariant breaks each invariant by hand.
func TestVerifyFindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	violations := map[string]string{ // by the statement that causes them
		``:                              "",
		`DELETE FROM identity_revision`: "identity_revision",
		`DELETE FROM catalog_revision`:  "catalog_revision",
		`DELETE FROM shared_secrets WHERE name = 'cursor'`:                                                                               "shared_secrets",
		`DELETE FROM shared_secrets WHERE name = 'webhook_master'`:                                                                       "shared_secrets",
		`UPDATE api_rate_limit_buckets SET used = 61`:                                                                                    "window_limit",
		`DELETE FROM question_tags WHERE tag = 'x'`:                                                                                      "question_tags",
		`DELETE FROM own_question_tags WHERE tag = 'x'`:                                                                                  "own_question_tags",
		`UPDATE own_questions SET tags = '{x}'`:                                                                                          "own_question_tags",
		`INSERT INTO questions SELECT id, text, language, country, topic, '{}', status FROM own_questions`:                               "question_ids",
		`UPDATE questions SET tags = '{x}'`:                                                                                              "question_tags",
		`INSERT INTO methodologies SELECT 'AIVM-2.0', status, measurement_types, 1, 1 FROM methodologies`:                                "one_methodology",
		`DELETE FROM measurement_jobs WHERE ordinal = 4`:                                                                                 "run_jobs",
		`UPDATE measurement_jobs SET ordinal = 5 WHERE ordinal = 4`:                                                                      "run_jobs",
		`INSERT INTO measurement_jobs SELECT account_id, gen_random_uuid(), 1 FROM measurement_runs`:                                     "job_run",
		`UPDATE measurement_runs SET status = 'completed'`:                                                                               "run_state run_event",
		`UPDATE measurement_runs SET methodology_version = 'AIVM-9.9'; UPDATE usage_records SET methodology_version = 'AIVM-9.9'`:        "run_references",
		`DELETE FROM models WHERE id = 'a'`:                                                                                              "catalog_of_runs",
		`DELETE FROM own_questions`:                                                                                                      "catalog_of_runs",
		`DELETE FROM own_questions; UPDATE accounts SET erased_at = now()`:                                                               "",
		`DELETE FROM question_tags; DELETE FROM questions`:                                                                               "catalog_of_runs",
		`DELETE FROM measurement_run_models WHERE model_id = 'a'`:                                                                        "run_models",
		`UPDATE measurement_run_models SET created_at = now() + interval '1 s' WHERE model_id = 'a'`:                                     "run_models",
		`DELETE FROM usage_records`:                                                                                                      "run_usage",
		`UPDATE usage_records SET jobs = 5`:                                                                                              "run_usage",
		`INSERT INTO usage_records SELECT account_id, gen_random_uuid(), credential_id, 1, 'grounded', 'AIVM-1.0' FROM measurement_runs`: "run_usage",
		`DELETE FROM account_months`:                                                                                                     "account_months",
		`UPDATE account_months SET jobs_ordered = 5`:                                                                                     "account_months",
		`UPDATE account_months SET jobs_completed = 2, jobs_failed = 2`:                                                                  "account_months",
		`UPDATE account_months SET runs_purged = 1`:                                                                                      "account_months",
		pendingDelivery: "webhook_queues_wake",
		pendingDelivery + `;
		INSERT INTO webhook_queues (account_id, owner) SELECT id, id FROM accounts`: "webhook_queues_wake",
		`INSERT INTO brands SELECT account_id, gen_random_uuid(), 2, kind, 'Ostrel', '{kovalt!}', domains, exclude, match_case, status FROM brands;
		UPDATE brand_revisions SET revision = 2`: "brand_names",
		`DELETE FROM brand_revisions`:                  "brand_revisions facts_of_ended_jobs",
		`UPDATE measurement_runs SET jobs_counted = 5`: "facts_are_counted_on_runs",
		`UPDATE measurement_runs SET jobs_counted = 3; INSERT INTO visibility_backlog SELECT account_id, id FROM measurement_runs`:         "facts_are_counted_on_runs",
		`UPDATE measurement_runs SET jobs_counted = 0; DELETE FROM visibility_facts`:                                                       "answers_have_facts",
		`UPDATE visibility_facts SET run_id = '01980000-0000-7000-8000-000000000000'`:                                                      "facts_are_counted_on_runs facts_have_a_run",
		`UPDATE visibility_facts SET cells = sources`:                                                                                      "facts_of_ended_jobs",
		`UPDATE visibility_facts SET sources = cells`:                                                                                      "facts_of_ended_jobs",
		`UPDATE visibility_facts SET facts = cells`:                                                                                        "facts_of_ended_jobs",
		`UPDATE visibility_facts SET last_ordinal = 5`:                                                                                     "facts_of_ended_jobs",
		`UPDATE brands SET number = 2`:                                                                                                     "facts_of_ended_jobs facts_equal_their_answers",
		`UPDATE job_results SET ordinal = 12 - ordinal WHERE ordinal >= 3; UPDATE job_results SET ordinal = ordinal - 5 WHERE ordinal > 7`: "facts_of_ended_jobs",
		`UPDATE job_results SET answer = '{"text":"Ostrel."}' WHERE ordinal = 1`:                                                           "facts_equal_their_answers",
		`UPDATE job_results SET answer = replace(answer, 'a.example', 'b.example') WHERE ordinal = 1`:                                      "facts_equal_their_answers",
		`UPDATE job_results SET answer = 'x' WHERE ordinal = 1; UPDATE usage_records SET jobs = 5`:                                         "run_usage facts_equal_their_answers",
		// These facts will be replaced, or are kept because their answers are not.
		`UPDATE brand_revisions SET revision = 2; UPDATE job_results SET answer = '{"text":"Ostrel."}' WHERE ordinal = 1`:                  "",
		`UPDATE visibility_facts SET deleted = true; UPDATE job_results SET answer = NULL`:                                                 "",
		`UPDATE visibility_facts SET deleted = true`:                                                                                       "facts_of_ended_jobs",
		`UPDATE visibility_facts SET revision = 2`:                                                                                         "facts_of_ended_jobs",
		`UPDATE events SET type = 'run.completed'`:                                                                                         "run_event",
		`UPDATE events SET type = 'webhook.test'`:                                                                                          "run_event",
		`UPDATE events SET type = 'webhook.test'; UPDATE accounts SET erased_at = now()`:                                                   "",
		`UPDATE measurement_runs SET status = 'running', finished_at = NULL`:                                                               "run_state account_months run_event",
		`DELETE FROM events; UPDATE schema_migrations SET applied_at = now() - interval '25 hours'`:                                        "run_event",
		`DELETE FROM events; UPDATE schema_migrations SET applied_at = now() - interval '25 hours'; UPDATE accounts SET erased_at = now()`: "",
		`DELETE FROM events; UPDATE schema_migrations SET applied_at = now() + interval '1 minute'`:                                        "",
		`DELETE FROM events; UPDATE schema_migrations SET applied_at = now() - interval '60 days';
		UPDATE measurement_runs SET finished_at = now() - interval '30 days'`: "",
		`UPDATE measurement_runs SET finished_at = now() - interval '60 days'; UPDATE events SET type = 'run.completed'`:                                  "run_event",
		`UPDATE idempotency_records SET run_id = '01980000-0000-7000-8000-000000000000'`:                                                                  "idempotency_run",
		`INSERT INTO idempotency_records SELECT account_id, method, route, 'other', request_hash, run_id, answer, created_at FROM idempotency_records`:    "idempotency_run",
		`UPDATE credentials SET scopes = '{runs:read,admin}'`:                                                                                             "credential_scopes",
		`INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) SELECT id, id, 1, 'https://a', '', '{run.renamed}' FROM accounts`: "webhook_event_types",
		`INSERT INTO events (account_id, id, type, subject_id, data) SELECT id, id, 'brand.created', id, '{}' FROM accounts`:                              "event_types",
		`INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, detected_at)
		SELECT id, id, 'other', 'low', 'open', 'a', 'a', 'none', now() FROM accounts`: "alert_type",
		`INSERT INTO schedule_occurrences SELECT account_id, schedule_id, due_at - interval '1 day', due_at - interval '1 day', 1, 'created', NULL, NULL, run_id, now()
		FROM schedule_occurrences`: "occurrence_run",
		`UPDATE schedules SET next_at = last_due_at`: "occurrence_order",
		`INSERT INTO schedule_occurrences SELECT account_id, schedule_id, due_at - interval '1 day', due_at + interval '1 s', 2, 'skipped', 'missed', '', NULL, now()
		FROM schedule_occurrences`: "occurrence_order",
		`UPDATE schedules SET last_run_id = NULL`: "schedule_last_run",
		`INSERT INTO schedules SELECT account_id, gen_random_uuid(), name || n, status, paused_reason, cadence, at_minute, weekday, day, time_zone, model_ids,
		  question_ids, repetitions, measurement_type, locale, country, language, min_change, next_at, NULL, NULL, credential_id, 0, created_at, updated_at
		FROM schedules, generate_series(1, 100) n`: "schedule_bound",
		`INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, detected_at, schedule_id)
		SELECT id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', now(), id FROM accounts`: "derived_schedule",
		`DROP INDEX alerts_fingerprint;
		INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, detected_at, schedule_id, fingerprint)
		SELECT account_id, gen_random_uuid(), 'run_failed', 'low', 'open', 'a', 'a', 'none', now(), id, 'run_failed' FROM schedules, generate_series(1, 2)`: "derived_fingerprint",
		`UPDATE job_results SET error_code = NULL, error_message = NULL`:                                                            "run_counters facts_of_ended_jobs",
		`INSERT INTO job_leases SELECT account_id, id, 4, 4, 'p', created_at, 'held', 1, 1, now(), now(), id FROM measurement_runs`: "job_once",
		`INSERT INTO job_leases SELECT account_id, id, 2, 3, 'p', created_at, 'held', 1, 1, now(), now(), id FROM measurement_runs`: "job_once lease_of_one_model",
		`INSERT INTO job_attempts SELECT account_id, id, 5, 1, 'retry' FROM measurement_runs`:                                       "job_run_exists",
		`INSERT INTO job_holds SELECT account_id, id, 'p', 1 FROM measurement_runs`:                                                 "job_holds",
		`INSERT INTO job_queue SELECT account_id, id, 2, 'p', created_at, 4, 4 FROM measurement_runs`:                               "job_once job_turns",
	}
	tested := map[string]bool{}
	for _, names := range violations {
		for _, name := range strings.Fields(names) {
			tested[name] = true
		}
	}
	for _, i := range capability.Invariants() {
		if !tested[i.Name] {
			t.Errorf("no case breaks the invariant %s", i.Name)
		}
	}
	var shared *pgxpool.Pool // each case is undone in it
	if !storetest.OnCitus() {
		shared = consistent(t, "")
	}
	for _, sql := range slices.Sorted(maps.Keys(violations)) {
		t.Run(violations[sql], func(t *testing.T) {
			if shared == nil {
				t.Parallel()
			}
			found := violationsAfter(t, shared, sql)
			names := []string{}
			for _, v := range found {
				names = append(names, v.Invariant.Name)
				if v.Count == 0 || len(v.Rows) == 0 {
					t.Errorf("%s reports no rows", v.Invariant.Name)
				}
				for _, row := range v.Rows {
					if id := uuid.FindString(capability.PublicIDs(row)); id != "" {
						t.Errorf("%s prints the UUID %s: %s", v.Invariant.Name, id, row)
					}
				}
			}
			if diff := cmp.Diff(strings.Fields(violations[sql]), names); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s%v", sql, diff, found)
			}
		})
	}
}

// violationsAfter returns the invariants that a statement breaks: in a transaction on shared that is rolled back, or in
// a database of its own, as a cluster reads nothing in parallel after some changes of a transaction.
func violationsAfter(t *testing.T, shared *pgxpool.Pool, sql string) (found []store.Violation) {
	t.Helper()
	if shared == nil {
		found, err := store.Verify(t.Context(), consistent(t, sql), capability.Invariants())
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return found
	}
	tx, err := shared.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	if _, err = tx.Exec(t.Context(), sql); err == nil {
		found, err = store.Verify(t.Context(), within{tx}, capability.Invariants())
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return found
}

// within begins transactions in another.
type within struct{ pgx.Tx }

func (w within) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) { return w.Begin(ctx) }

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`)

// TestVerifyHelp: the help lists the invariants.
func TestVerifyHelp(t *testing.T) {
	t.Parallel()
	_, help, _ := aiv(t.Context(), "verify", "-h")
	for _, i := range capability.Invariants() {
		if want := "\n  " + i.Name + ": " + i.Doc + "\n"; !strings.Contains(help, want) {
			t.Errorf("want %q in:\n%s", want, help)
		}
	}
}

// TestVerifyCommand: the violations are printed with ids as all commands print them, and decide the exit status.
func TestVerifyCommand(t *testing.T) {
	t.Parallel()
	pool := consistent(t, "")
	url := pool.Config().ConnString()
	prints{"verify -json", 0, `"violations":\[\]`}.expect(t, url)
	storetest.Exec(t, pool, `UPDATE api_rate_limit_buckets SET used = 61`, `DELETE FROM usage_records`)
	const account = " of account acct_0000000000e008000000000001"
	for _, want := range []string{"credential cred_0000000000e008000000000002" + account + ", window ",
		"run run_0000000000e008000000000003" + account + "\n"} {
		prints{"verify", 1, "\n  " + want}.expect(t, url)
	}
}
