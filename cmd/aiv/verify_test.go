package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/store"
	"aiv/store/storetest"
)

// pendingDelivery are statements that write a delivery to an enabled endpoint.
const pendingDelivery = `INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) SELECT id, id, 1, 'https://a', '', '{*}' FROM accounts;
INSERT INTO events (account_id, id, type, subject_id, data) SELECT id, id, 'webhook.test', id, '{}' FROM accounts;
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT id, id, id FROM accounts`

// TestVerifyFindsEachBrokenInvariant breaks each invariant by hand.
func TestVerifyFindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	violations := map[string]string{ // by the statement that causes them
		``:                              "",
		`DELETE FROM identity_revision`: "identity_revision",
		`DELETE FROM catalog_revision`:  "catalog_revision",
		`DELETE FROM shared_secrets WHERE name = 'cursor'`:                                                                               "shared_secrets",
		`UPDATE api_rate_limit_buckets SET used = 61`:                                                                                    "window_limit",
		`DELETE FROM question_tags WHERE tag = 'x'`:                                                                                      "question_tags",
		`DELETE FROM own_question_tags WHERE tag = 'x'`:                                                                                  "own_question_tags",
		`INSERT INTO questions SELECT id, text, language, country, topic, '{}', status FROM own_questions`:                               "question_ids",
		`INSERT INTO methodologies SELECT 'AIVM-2.0', status, measurement_types, 1, 1 FROM methodologies`:                                "one_methodology",
		`DELETE FROM measurement_jobs WHERE ordinal = 4`:                                                                                 "run_jobs",
		`INSERT INTO measurement_jobs SELECT account_id, gen_random_uuid(), 1 FROM measurement_runs`:                                     "job_run",
		`UPDATE measurement_runs SET status = 'completed'`:                                                                               "run_state run_event",
		`UPDATE measurement_runs SET methodology_version = 'AIVM-9.9'; UPDATE usage_records SET methodology_version = 'AIVM-9.9'`:        "run_references",
		`DELETE FROM models WHERE id = 'a'`:                                                                                              "catalog_of_runs",
		`DELETE FROM own_questions`:                                                                                                      "catalog_of_runs",
		`DELETE FROM own_questions; UPDATE accounts SET erased_at = now()`:                                                               "",
		`DELETE FROM measurement_run_models WHERE model_id = 'a'`:                                                                        "run_models",
		`DELETE FROM usage_records`:                                                                                                      "run_usage",
		`INSERT INTO usage_records SELECT account_id, gen_random_uuid(), credential_id, 1, 'grounded', 'AIVM-1.0' FROM measurement_runs`: "run_usage",
		`DELETE FROM account_months`:                                                                                                     "account_months",
		`UPDATE account_months SET jobs_completed = 2, jobs_failed = 2`:                                                                  "account_months",
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
		`UPDATE visibility_facts SET last_ordinal = 5`:                                                                                     "facts_of_ended_jobs",
		`UPDATE brands SET number = 2`:                                                                                                     "facts_of_ended_jobs facts_equal_their_answers",
		`UPDATE job_results SET ordinal = 12 - ordinal WHERE ordinal >= 3; UPDATE job_results SET ordinal = ordinal - 5 WHERE ordinal > 7`: "facts_of_ended_jobs",
		`UPDATE job_results SET answer = '{"text":"Ostrel."}' WHERE ordinal = 1`:                                                           "facts_equal_their_answers",
		`UPDATE job_results SET answer = 'x' WHERE ordinal = 1; UPDATE usage_records SET jobs = 5`:                                         "run_usage facts_equal_their_answers",
		// These facts will be replaced, or are kept because their answers are not.
		`UPDATE brand_revisions SET revision = 2; UPDATE job_results SET answer = '{"text":"Ostrel."}' WHERE ordinal = 1`:                  "",
		`UPDATE visibility_facts SET deleted = true; UPDATE job_results SET answer = NULL`:                                                 "",
		`UPDATE visibility_facts SET deleted = true`:                                                                                       "facts_of_ended_jobs",
		`UPDATE events SET type = 'run.completed'`:                                                                                         "run_event",
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
		`INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, detected_at, schedule_id)
		SELECT id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', now(), id FROM accounts; UPDATE accounts SET erased_at = now()`: "",
		`DROP INDEX alerts_fingerprint;
		INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, detected_at, schedule_id, fingerprint)
		SELECT account_id, gen_random_uuid(), 'run_failed', 'low', 'open', 'a', 'a', 'none', now(), id, 'run_failed' FROM schedules, generate_series(1, 2)`: "derived_fingerprint",
		`UPDATE job_results SET error_code = NULL, error_message = NULL`:                                                            "run_counters facts_of_ended_jobs",
		`INSERT INTO job_leases SELECT account_id, id, 2, 3, 'p', created_at, 'held', 1, 1, now(), now(), id FROM measurement_runs`: "job_once lease_of_one_model",
		`INSERT INTO job_attempts SELECT account_id, id, 5, 1, 'retry' FROM measurement_runs`:                                       "job_run_exists",
		`INSERT INTO job_holds SELECT account_id, id, 'p', 1 FROM measurement_runs`:                                                 "job_holds",
		`INSERT INTO job_queue SELECT account_id, id, 2, 'p', created_at, 4, 4 FROM measurement_runs`:                               "job_once job_turns",
	}
	broken := strings.Fields(strings.Join(slices.Collect(maps.Values(violations)), " "))
	for _, i := range capability.Invariants() {
		if !slices.Contains(broken, i.Name) {
			t.Errorf("no case breaks the invariant %s", i.Name)
		}
	}
	var shared *pgxpool.Pool // each case is undone in it
	if !storetest.OnCitus() {
		shared = consistent(t)
	}
	for _, sql := range slices.Sorted(maps.Keys(violations)) {
		t.Run(violations[sql], func(t *testing.T) {
			if shared == nil {
				t.Parallel()
			}
			found, err := store.Verify(t.Context(), after(t, shared, sql), capability.Invariants())
			must(t, err)
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
			equal(t, strings.Fields(violations[sql]), names, sql, found)
		})
	}
}

// after returns a consistent database after a statement: a transaction on shared that is rolled back, or a database of
// its own, as a cluster reads nothing in parallel after some changes of a transaction.
func after(t *testing.T, shared *pgxpool.Pool, sql string) store.Beginner {
	t.Helper()
	if shared != nil {
		return within{storetest.Begin(t, shared, sql)}
	}
	pool := consistent(t)
	storetest.Exec(t, pool, strings.Split(sql, ";\n")...) // a cluster takes one statement at a time
	return pool
}

// within begins transactions in another.
type within struct{ pgx.Tx }

func (w within) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) { return w.Begin(ctx) }

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`)

// TestVerifyCommand: the violations are printed with ids as all commands print them, and decide the exit status.
func TestVerifyCommand(t *testing.T) {
	t.Parallel()
	pool := consistent(t)
	url := pool.Config().ConnString()
	prints{"verify -json", 0, `"violations":\[\]`}.expect(t, url)
	storetest.Exec(t, pool, `UPDATE api_rate_limit_buckets SET used = 61`, `DELETE FROM usage_records`)
	var account, credential, run store.ID
	must(t, pool.QueryRow(t.Context(), `SELECT c.account_id, c.id, r.id FROM credentials c JOIN measurement_runs r USING (account_id)`).
		Scan(&account, &credential, &run))
	of := " of account " + account.Text("acct")
	for _, want := range []string{"credential " + credential.Text("cred") + of + ", window ", "run " + run.Text("run") + of + "\n"} {
		prints{"verify", 1, "\n  " + want}.expect(t, url)
	}
}
