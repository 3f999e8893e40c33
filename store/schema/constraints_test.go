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

// validRows has one row of the tables whose constraints are rules of several columns, beside the second account. The run
// has 2 models, 1 question and 2 repetitions.
var validRows = []string{
	`INSERT INTO plans (code, features, rate_limit_per_minute) VALUES ('plan', '{api_access}', 1000000)`,
	`INSERT INTO accounts (id, name, plan_code)
		VALUES (` + ourAccount + `, 'us', 'plan'), (` + theirAccount + `, 'them', 'plan')`,
	`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes, rate_limit_per_minute)
		VALUES (` + ourCredential + `, ` + ourAccount + `, 'ours', 'aiv_live_abcDEF12', sha256('ours'), '{}', 1000000)`,
	`INSERT INTO api_rate_limit_buckets (account_id, credential_id, window_start, used, granted, rate_limit)
		VALUES (` + ourAccount + `, ` + ourCredential + `, now(), 2, 2, 2)`,
	`INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
			question_ids, repetitions, locale, country, language,
			total_jobs, jobs_returned, jobs_completed, jobs_failed, jobs_canceled)
		VALUES (` + ourAccount + `, ` + ourRun + `, ` + ourCredential + `, 'grounded', 'AIVM-1.0', '{a,b}',
			'{q}', 2, 'it-IT', 'IT', 'it', 4, 1, 1, 1, 1)`,
	`INSERT INTO recommendations (account_id, id, run_id, type, category, title, summary, priority, status, model_ids,
			question_ids, created_at, updated_at)
		VALUES (` + ourAccount + `, gen_random_uuid(), ` + ourRun + `, 't', 'social', 'T', '', 'low', 'done', '{}',
			'{}', now(), now())`,
	`INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
		VALUES (` + ourAccount + `, gen_random_uuid(), 'run_failed', 'low', 'open', 'T', '', 'none', ` + ourRun + `, now())`,
}

// TestSchemaRefuses: each change of a valid row is refused by a constraint. The keys and the constraints of one column
// can be read in schema.sql, which other tests compare with the migrations.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t) // Citus reports no names of constraints
	storetest.Exec(t, pool, validRows...)
	for _, test := range []struct{ table, change, constraint string }{
		{"credentials", `key_hash = 'aiv_live_a whole key'`, "credentials_key_hash_check"},
		{"api_rate_limit_buckets", `granted = 3`, "api_rate_limit_buckets_check"},
		{"measurement_runs", `total_jobs = 5`, "(total_jobs = ((cardinality"},
		{"measurement_runs", `total_jobs = 0, model_ids = '{}'`, "(total_jobs = ((cardinality"},
		{"measurement_runs", `jobs_completed = 2`, "<= total_jobs"},
		{"measurement_runs", `jobs_failed = -1`, "measurement_runs_jobs_failed_check"},
		{"measurement_runs", `started_at = now()`, "'queued'"},
		{"measurement_runs", `status = 'running'`, "'running'"},
		{"measurement_runs", `status = 'completed', started_at = now()`, "finished_at IS NOT NULL"},
		{"measurement_runs", `finished_at = now()`, "finished_at IS NOT NULL"},
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
