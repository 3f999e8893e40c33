package schema_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ids of the valid rows.
const (
	ourAccount, ourCredential, ourRun, freshID = `'00000000-0000-7000-8000-000000000001'`, `'00000000-0000-7000-8000-000000000002'`,
		`'00000000-0000-7000-8000-000000000003'`, `'00000000-0000-7000-8000-000000000004'`
	theirAccount, theirCredential, missing = `'00000000-0000-7000-8000-000000000005'`, `'00000000-0000-7000-8000-000000000006'`,
		`'00000000-0000-7000-8000-00000000000f'`
)

// setUpSchema writes two customers and a run of 2 models, 1 question and 2 repetitions without its jobs, usage or key.
const setUpSchema = `
INSERT INTO plans (code, features) VALUES ('plan', '{api_access}');
INSERT INTO accounts (id, name, plan_code) VALUES (` + ourAccount + `, 'us', 'plan'), (` + theirAccount + `, 'them', 'plan');
INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES
  (` + ourCredential + `, ` + ourAccount + `, 'ours', 'aiv_live_00000000', sha256('ours'), '{}'),
  (` + theirCredential + `, ` + theirAccount + `, 'theirs', 'aiv_live_00000000', sha256('theirs'), '{}');
INSERT INTO providers (code, name) VALUES ('provider', 'Provider');
INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
  repetitions, locale, country, language, total_jobs)
VALUES (` + ourAccount + `, ` + ourRun + `, ` + ourCredential + `, 'grounded', 'AIVM-1.0', '{a,b}', '{q}', 2, 'it-IT', 'IT', 'it', 4);`

// right has a row of each table that the schema takes: column by column, in SQL.
var right = map[string]map[string]string{
	"plans":    {"code": `'new'`, "features": `'{}'`, "rate_limit_per_minute": `NULL`},
	"accounts": {"id": freshID, "name": `'new'`, "plan_code": `'plan'`},
	"credentials": {"id": freshID, "account_id": ourAccount, "name": `'new'`, "key_prefix": `'aiv_live_abcDEF12'`, "key_hash": `sha256('new')`,
		"scopes": `'{runs:read,runs:write,recommendations:read,alerts:read,webhooks:manage}'`, "rate_limit_per_minute": `1000000`, "rotated_from": ourCredential},
	"api_rate_limit_buckets": {"account_id": ourAccount, "credential_id": ourCredential, "window_start": `now()`, "used": `2`, "granted": `2`, "rate_limit": `2`},
	"audit_log":              {"actor": `'a'`, "action": `'b'`, "subject": `'c'`},
	"methodologies":          {"version": `'AIVM-2.0'`, "status": `'active'`, "measurement_types": `'{grounded}'`, "max_repetitions": `32767`, "max_jobs": `1000000`},
	"providers":              {"code": `'new'`, "name": `'New'`},
	"provider_dependencies":  {"provider_code": `'provider'`, "dependency": `'contract'`, "met": `true`, "note": `'seen'`},
	"models": {"id": `'a/b:c-d._9'`, "name": `'A'`, "provider_code": `'provider'`, "provider_model": `'a'`, "status": `'active'`,
		"measurement_types": `'{grounded}'`, "countries": `NULL`, "languages": `NULL`, "grounded_search": `true`},
	"questions": {"id": `repeat('q', 128)`, "text": `'?'`, "language": `'it'`, "country": `'IT'`, "topic": `'t'`, "tags": `'{}'`, "status": `'active'`},
	"own_questions": {"account_id": ourAccount, "id": `repeat('q', 128)`, "text": `'?'`, "language": `'it'`, "country": `'IT'`, "topic": `'t'`, "tags": `'{}'`,
		"status": `'archived'`, "form_hash": `sha256('')`},
	"own_question_accounts": {"account_id": ourAccount},
	"measurement_runs": {"account_id": ourAccount, "id": freshID, "credential_id": ourCredential, "status": `'queued'`, "measurement_type": `'grounded'`,
		"methodology_version": `'AIVM-1.0'`, "model_ids": `'{a,b}'`, "question_ids": `'{q}'`, "repetitions": `2`, "locale": `'it-IT'`, "country": `'IT'`,
		"language": `'it'`, "total_jobs": `4`, "jobs_returned": `1`, "jobs_completed": `1`, "jobs_failed": `1`, "jobs_canceled": `1`,
		"started_at": `NULL`, "finished_at": `NULL`},
	"measurement_jobs": {"account_id": ourAccount, "run_id": ourRun, "ordinal": `1`},
	"account_months":   {"account_id": ourAccount, "month": `'2026-11-01Z'`, "runs": `0`, "jobs_ordered": `0`},
	"usage_records":    {"account_id": ourAccount, "run_id": ourRun, "credential_id": ourCredential, "jobs": `4`, "measurement_type": `'grounded'`, "methodology_version": `'AIVM-1.0'`},
	"idempotency_records": {"account_id": ourAccount, "method": `'POST'`, "route": `'/v1/runs'`, "key": `repeat('k', 255)`, "request_hash": `sha256('')`,
		"run_id": ourRun, "answer": `'{}'`},
	"recommendations": {"account_id": ourAccount, "id": freshID, "type": `'t'`, "category": `'social'`, "title": `'T'`, "summary": `''`, "priority": `'low'`,
		"status": `'done'`, "model_ids": `'{}'`, "question_ids": `'{}'`, "run_id": ourRun, "created_at": `now()`, "updated_at": `now()`},
	"alerts": {"account_id": ourAccount, "id": freshID, "type": `'run_failed'`, "severity": `'low'`, "status": `'open'`, "title": `'T'`, "message": `''`,
		"direction": `'none'`, "run_id": ourRun, "detected_at": `now()`, "resolved_at": `NULL`},
}

// wrong is each table's right row with one column changed (or several, where one alone says nothing): which constraint
// refuses it.
var wrong = []struct {
	table      string
	change     map[string]string
	constraint string
}{
	{"plans", map[string]string{"code": `'plan'`}, "plans_pkey"},
	{"plans", map[string]string{"code": `'Upper'`}, "plans_code_check"},
	{"plans", map[string]string{"features": `'{a,NULL}'`}, "plans_features_check"},
	{"plans", map[string]string{"rate_limit_per_minute": `0`}, "plans_rate_limit_per_minute_check"},
	{"plans", map[string]string{"rate_limit_per_minute": `1000001`}, "plans_rate_limit_per_minute_check"},
	{"accounts", map[string]string{"id": ourAccount}, "accounts_pkey"},
	{"accounts", map[string]string{"name": `''`}, "accounts_name_check"},
	{"accounts", map[string]string{"plan_code": `'none'`}, "accounts_plan_code_fkey"},
	{"credentials", map[string]string{"account_id": missing}, "credentials_account_id_fkey"},
	{"credentials", map[string]string{"name": `''`}, "credentials_name_check"},
	{"credentials", map[string]string{"key_prefix": `'aiv_live_abcDEF123'`}, "credentials_key_prefix_check"},
	{"credentials", map[string]string{"key_prefix": `'aiv_test_abcDEF12'`}, "credentials_key_prefix_check"},
	{"credentials", map[string]string{"key_hash": `sha256('ours')`}, "credentials_key_hash_key"},
	{"credentials", map[string]string{"key_hash": `'aiv_live_a whole key'`}, "credentials_key_hash_check"},
	{"credentials", map[string]string{"rate_limit_per_minute": `0`}, "credentials_rate_limit_per_minute_check"},
	{"credentials", map[string]string{"rotated_from": missing}, "credentials_rotated_from_fkey"},
	{"api_rate_limit_buckets", map[string]string{"used": `-1`}, "api_rate_limit_buckets_check"},
	{"api_rate_limit_buckets", map[string]string{"granted": `3`}, "api_rate_limit_buckets_check"},
	{"api_rate_limit_buckets", map[string]string{"granted": `-1`}, "api_rate_limit_buckets_check"},
	{"audit_log", map[string]string{"detail": `NULL`}, "detail"},
	{"methodologies", map[string]string{"version": `'AIVM-1.0'`}, "methodologies_pkey"},
	{"methodologies", map[string]string{"version": `'1.0'`}, "methodologies_version_check"},
	{"methodologies", map[string]string{"status": `'draft'`}, "methodologies_status_check"},
	{"methodologies", map[string]string{"measurement_types": `'{}'`}, "methodologies_measurement_types_check"},
	{"methodologies", map[string]string{"max_repetitions": `0`}, "methodologies_max_repetitions_check"},
	{"methodologies", map[string]string{"max_repetitions": `32768`}, "methodologies_max_repetitions_check"},
	{"methodologies", map[string]string{"max_jobs": `1000001`}, "methodologies_max_jobs_check"},
	{"providers", map[string]string{"code": `'provider'`}, "providers_pkey"},
	{"providers", map[string]string{"code": `'a b'`}, "providers_code_check"},
	{"provider_dependencies", map[string]string{"dependency": `'budget'`}, "provider_dependencies_dependency_check"},
	{"provider_dependencies", map[string]string{"note": `''`}, "provider_dependencies_note_check"},
	{"provider_dependencies", map[string]string{"provider_code": `'none'`}, "provider_dependencies_provider_code_fkey"},
	{"models", map[string]string{"id": `'a b'`}, "models_id_check"},
	{"models", map[string]string{"provider_code": `'none'`}, "models_provider_code_fkey"},
	{"models", map[string]string{"status": `'new'`}, "models_status_check"},
	{"models", map[string]string{"measurement_types": `'{}'`}, "models_measurement_types_check"},
	{"models", map[string]string{"grounded_search": `NULL`}, "grounded_search"},
	{"questions", map[string]string{"id": `repeat('q', 129)`}, "questions_id_check"},
	{"questions", map[string]string{"text": `''`}, "questions_text_check"},
	{"questions", map[string]string{"status": `'disabled'`}, "questions_status_check"},
	{"own_questions", map[string]string{"account_id": missing}, "own_questions_account_id_fkey"},
	{"own_questions", map[string]string{"id": `''`}, "own_questions_id_check"},
	{"own_questions", map[string]string{"text": `''`}, "own_questions_text_check"},
	{"own_questions", map[string]string{"status": `'disabled'`}, "own_questions_status_check"},
	{"own_questions", map[string]string{"form_hash": `'form'`}, "own_questions_form_hash_check"},
	{"own_question_accounts", map[string]string{"account_id": missing}, "own_question_accounts_account_id_fkey"},
	{"measurement_runs", map[string]string{"id": ourRun}, "measurement_runs_pkey"},
	{"measurement_runs", map[string]string{"status": `'done'`}, "measurement_runs_status_check"},
	{"measurement_runs", map[string]string{"total_jobs": `5`, "jobs_returned": `0`}, "(total_jobs = ((cardinality"},
	{"measurement_runs", map[string]string{"total_jobs": `0`, "model_ids": `'{}'`, "jobs_returned": `0`, "jobs_completed": `0`, "jobs_failed": `0`, "jobs_canceled": `0`}, "(total_jobs = ((cardinality"},
	{"measurement_runs", map[string]string{"jobs_completed": `2`}, "<= total_jobs"},
	{"measurement_runs", map[string]string{"jobs_failed": `-1`}, "measurement_runs_jobs_failed_check"},
	{"measurement_runs", map[string]string{"started_at": `now()`}, "'queued'"},
	{"measurement_runs", map[string]string{"status": `'running'`}, "'running'"},
	{"measurement_runs", map[string]string{"status": `'completed'`, "started_at": `now()`}, "finished_at IS NOT NULL"},
	{"measurement_runs", map[string]string{"finished_at": `now()`}, "finished_at IS NOT NULL"},
	{"measurement_jobs", map[string]string{"ordinal": `0`}, "measurement_jobs_ordinal_check"},
	{"account_months", map[string]string{"month": `'2026-11-02Z'`}, "account_months_month_check"},
	{"account_months", map[string]string{"runs": `-1`}, "account_months_runs_check"},
	{"usage_records", map[string]string{"jobs": `0`}, "usage_records_jobs_check"},
	{"idempotency_records", map[string]string{"key": `''`}, "idempotency_records_key_check"},
	{"idempotency_records", map[string]string{"key": `repeat('k', 256)`}, "idempotency_records_key_check"},
	{"idempotency_records", map[string]string{"request_hash": `''`}, "idempotency_records_request_hash_check"},
	{"recommendations", map[string]string{"account_id": theirAccount}, "recommendations_account_id_run_id_fkey"},
	{"recommendations", map[string]string{"category": `'other'`}, "recommendations_category_check"},
	{"recommendations", map[string]string{"priority": `'critical'`}, "recommendations_priority_check"},
	{"recommendations", map[string]string{"status": `'open'`}, "recommendations_status_check"},
	{"alerts", map[string]string{"account_id": theirAccount}, "alerts_account_id_run_id_fkey"},
	{"alerts", map[string]string{"severity": `'fatal'`}, "alerts_severity_check"},
	{"alerts", map[string]string{"direction": `'sideways'`}, "alerts_direction_check"},
	{"alerts", map[string]string{"status": `'resolved'`}, "resolved_at IS NOT NULL"},
	{"alerts", map[string]string{"resolved_at": `now()`}, "resolved_at IS NOT NULL"},
}

func insertion(table string, change map[string]string) string {
	row := maps.Clone(right[table])
	maps.Copy(row, change)
	columns := slices.Sorted(maps.Keys(row))
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = row[c]
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(columns, ", "), strings.Join(values, ", "))
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t) // Citus reports no names of constraints
	if _, err := pool.Exec(t.Context(), setUpSchema); err != nil {
		t.Fatal(err)
	}
	// try returns the constraint that rejects a row, with its definition, or the column that must not be NULL.
	try := func(sql string) (constraint string) {
		switch e := refusal(t, pool, sql); {
		case e == nil:
			return ""
		case e.ConstraintName == "":
			return e.ColumnName
		default:
			return e.ConstraintName + ": " + definition(t, pool, e.ConstraintName)
		}
	}
	for _, table := range slices.Sorted(maps.Keys(right)) {
		if got := try(insertion(table, nil)); got != "" {
			t.Errorf("the right row of %s is refused by %s", table, got)
		}
	}
	for _, w := range wrong {
		if got := try(insertion(w.table, w.change)); !strings.Contains(got, w.constraint) || got == "" {
			t.Errorf("%s with %v: refused by %q, want %s", w.table, w.change, got, w.constraint)
		}
	}
	for _, table := range []string{"usage_records", "idempotency_records", "provider_dependencies", "api_rate_limit_buckets"} {
		if got := try(insertion(table, nil) + "; " + insertion(table, nil)); !strings.HasPrefix(got, table+"_pkey") {
			t.Errorf("a second row of %s is refused by %q", table, got)
		}
	}
}

// refusal is what the schema has against a statement, which is undone; nil: nothing.
func refusal(t *testing.T, pool *pgxpool.Pool, sql string) *pgconn.PgError {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), sql)
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.HasPrefix(e.Code, "23") {
		t.Fatalf("%s: %v", sql, err)
	}
	return e
}

func definition(t *testing.T, pool *pgxpool.Pool, constraint string) (text string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1
		UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = $1 LIMIT 1`, constraint).Scan(&text)
	if err != nil {
		t.Fatalf("constraint %s: %v", constraint, err)
	}
	return text
}
