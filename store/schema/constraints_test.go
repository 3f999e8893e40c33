package schema_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ids of the valid rows.
const (
	ourAccount, ourCredential, ourRun = `'00000000-0000-7000-8000-000000000001'`, `'00000000-0000-7000-8000-000000000002'`,
		`'00000000-0000-7000-8000-000000000003'`
	theirAccount = `'00000000-0000-7000-8000-000000000005'`
)

// validRows has one row of the tables whose constraints are more than a key or a list of words, beside the second
// account: the values are the largest that are valid. The run has 2 models, 1 question and 2 repetitions.
var validRows = []string{
	`INSERT INTO plans (code, features, rate_limit_per_minute) VALUES ('plan', '{api_access}', 1000000)`,
	`INSERT INTO accounts (id, name, plan_code)
		VALUES (` + ourAccount + `, 'us', 'plan'), (` + theirAccount + `, 'them', 'plan')`,
	`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes, rate_limit_per_minute)
		VALUES (` + ourCredential + `, ` + ourAccount + `, 'ours', 'aiv_live_abcDEF12', sha256('ours'), '{}', 1000000)`,
	`INSERT INTO api_rate_limit_buckets (account_id, credential_id, window_start, used, granted, rate_limit)
		VALUES (` + ourAccount + `, ` + ourCredential + `, now(), 2, 2, 2)`,
	`INSERT INTO methodologies (version, status, measurement_types, max_repetitions, max_jobs)
		VALUES ('AIVM-2.0', 'active', '{grounded}', 32767, 1000000)`,
	`INSERT INTO providers (code, name) VALUES ('provider', 'Provider')`,
	`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
		VALUES ('a/b:c-d._9', 'A', 'provider', 'a', 'active', '{grounded}', true)`,
	`INSERT INTO questions (id, text, language, country, topic, tags, status)
		VALUES (repeat('q', 128), '?', 'it', 'IT', 't', '{}', 'active')`,
	`INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
			question_ids, repetitions, locale, country, language,
			total_jobs, jobs_returned, jobs_completed, jobs_failed, jobs_canceled)
		VALUES (` + ourAccount + `, ` + ourRun + `, ` + ourCredential + `, 'grounded', 'AIVM-1.0', '{a,b}',
			'{q}', 2, 'it-IT', 'IT', 'it', 4, 1, 1, 1, 1)`,
	`INSERT INTO account_months (account_id, month, runs, jobs_ordered) VALUES (` + ourAccount + `, '2026-11-01Z', 0, 0)`,
	`INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
		VALUES (` + ourAccount + `, 'POST', '/v1/runs', repeat('k', 255), sha256(''), ` + ourRun + `, '{}')`,
	`INSERT INTO recommendations (account_id, id, run_id, type, category, title, summary, priority, status, model_ids,
			question_ids, created_at, updated_at)
		VALUES (` + ourAccount + `, gen_random_uuid(), ` + ourRun + `, 't', 'social', 'T', '', 'low', 'done', '{}',
			'{}', now(), now())`,
	`INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
		VALUES (` + ourAccount + `, gen_random_uuid(), 'run_failed', 'low', 'open', 'T', '', 'none', ` + ourRun + `, now())`,
}

// TestSchemaRefuses: each change of a valid row is refused by a constraint. The keys, the lists of words and the texts
// that must not be empty are in schema.sql, which other tests compare with the migrations.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t) // Citus reports no names of constraints
	storetest.Exec(t, pool, validRows...)
	for _, test := range []struct{ table, change, constraint string }{
		{"plans", `code = 'Upper'`, "plans_code_check"},
		{"plans", `features = '{a,NULL}'`, "plans_features_check"},
		{"plans", `rate_limit_per_minute = 0`, "plans_rate_limit_per_minute_check"},
		{"plans", `rate_limit_per_minute = 1000001`, "plans_rate_limit_per_minute_check"},
		{"credentials", `key_prefix = 'aiv_live_abcDEF123'`, "credentials_key_prefix_check"},
		{"credentials", `key_prefix = 'aiv_test_abcDEF12'`, "credentials_key_prefix_check"},
		{"credentials", `key_hash = 'aiv_live_a whole key'`, "credentials_key_hash_check"},
		{"credentials", `rate_limit_per_minute = 0`, "credentials_rate_limit_per_minute_check"},
		{"api_rate_limit_buckets", `used = -1, granted = -1`, "api_rate_limit_buckets_check"},
		{"api_rate_limit_buckets", `granted = 3`, "api_rate_limit_buckets_check"},
		{"methodologies", `version = '1.0'`, "methodologies_version_check"},
		{"methodologies", `measurement_types = '{}'`, "methodologies_measurement_types_check"},
		{"methodologies", `max_repetitions = 32768`, "methodologies_max_repetitions_check"},
		{"methodologies", `max_jobs = 1000001`, "methodologies_max_jobs_check"},
		{"providers", `code = 'a b'`, "providers_code_check"},
		{"models", `id = 'a b'`, "models_id_check"},
		{"models", `measurement_types = '{}'`, "models_measurement_types_check"},
		{"questions", `id = repeat('q', 129)`, "questions_id_check"},
		{"measurement_runs", `total_jobs = 5`, "(total_jobs = ((cardinality"},
		{"measurement_runs", `total_jobs = 0, model_ids = '{}'`, "(total_jobs = ((cardinality"},
		{"measurement_runs", `jobs_completed = 2`, "<= total_jobs"},
		{"measurement_runs", `jobs_failed = -1`, "measurement_runs_jobs_failed_check"},
		{"measurement_runs", `started_at = now()`, "'queued'"},
		{"measurement_runs", `status = 'running'`, "'running'"},
		{"measurement_runs", `status = 'completed', started_at = now()`, "finished_at IS NOT NULL"},
		{"measurement_runs", `finished_at = now()`, "finished_at IS NOT NULL"},
		{"account_months", `month = '2026-11-02Z'`, "account_months_month_check"},
		{"idempotency_records", `key = ''`, "idempotency_records_key_check"},
		{"idempotency_records", `key = repeat('k', 256)`, "idempotency_records_key_check"},
		{"recommendations", `account_id = ` + theirAccount, "recommendations_account_id_run_id_fkey"},
		{"alerts", `account_id = ` + theirAccount, "alerts_account_id_run_id_fkey"},
		{"alerts", `status = 'resolved'`, "resolved_at IS NOT NULL"},
		{"alerts", `resolved_at = now()`, "resolved_at IS NOT NULL"},
	} {
		if got := refusal(t, pool, "UPDATE "+test.table+" SET "+test.change); !strings.Contains(got, test.constraint) {
			t.Errorf("%s with %s: refused by %q, want %s", test.table, test.change, got, test.constraint)
		}
	}
}

// refusal returns the constraint that refuses a statement, with its definition, or "". The statement is undone.
func refusal(t *testing.T, pool *pgxpool.Pool, sql string) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err = tx.Exec(t.Context(), sql); err == nil {
		return ""
	}
	fault, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || fault.ConstraintName == "" {
		t.Fatalf("%s: %v", sql, err)
	}
	sql = `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '` + fault.ConstraintName + `'`
	return fault.ConstraintName + ": " + column[string](t, pool, sql)[0]
}
