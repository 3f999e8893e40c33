package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
	"aiv/store/storetest"
)

// accountRows writes a row of each table of an account's data: a final run that was created $2 ago, an open run of now,
// and more. The methodology is that of the migrations.
const accountRows = `
WITH given AS (SELECT $1::uuid AS account_id, now() - make_interval(days => $2) AS at
), run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, jobs_completed, created_at, started_at, finished_at)
  SELECT account_id, gen_random_uuid(), (SELECT id FROM credentials c WHERE c.account_id = given.account_id), 'completed', 'grounded', 'AIVM-1.0',
    '{m}'::text[], '{q}'::text[], 2, 'it-IT', 'IT', 'it', 2, 2, at, at, at FROM given
  UNION ALL
  SELECT account_id, gen_random_uuid(), (SELECT id FROM credentials c WHERE c.account_id = given.account_id), 'queued', 'grounded', 'AIVM-1.0',
    '{m}'::text[], '{q}'::text[], 3, 'it-IT', 'IT', 'it', 3, 0, now(), NULL, NULL FROM given
  RETURNING *
), model AS (
  INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id) SELECT account_id, unnest(model_ids), created_at, id FROM run
), job AS (
  INSERT INTO measurement_jobs (account_id, run_id, ordinal) SELECT account_id, id, generate_series(1, total_jobs) FROM run
), arrival AS (
  INSERT INTO job_arrivals (account_id, run_id) SELECT account_id, id FROM run WHERE status = 'queued'
), result AS (
  INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
  SELECT account_id, id, generate_series(1, jobs_completed), 2, true, created_at, created_at, '{}' FROM run
), attempt AS (
  INSERT INTO job_attempts (account_id, run_id, ordinal, attempt, outcome) SELECT account_id, id, 1, 1, 'retry' FROM run WHERE status = 'completed'
), turn AS (
  INSERT INTO job_turns (account_id, provider_code, turn) SELECT account_id, 'p', 1 FROM given
), usage AS (
  INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
  SELECT account_id, id, credential_id, total_jobs, measurement_type, methodology_version, created_at FROM run
), month AS (
  INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed)
  SELECT account_id, date_trunc('month', created_at, 'UTC'), count(*), sum(total_jobs), sum(jobs_completed) FROM run GROUP BY 1, 2
), key AS (
  INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
  SELECT account_id, 'POST', '/v1/runs', id::text, sha256(''), id, '', created_at FROM run
), question AS (
  INSERT INTO own_questions (id, account_id, text, language, country, topic, tags, status)
  SELECT 'q-' || account_id, account_id, '?', 'it', 'IT', 't', '{x}', 'active' FROM given RETURNING id, account_id
), tag AS (
  INSERT INTO own_question_tags (account_id, tag, question_id) SELECT account_id, 'x', id FROM question
), questions AS (
  INSERT INTO own_question_accounts (account_id) SELECT account_id FROM given
), alert AS (
  INSERT INTO alerts (account_id, id, type, severity, status, title, message, direction, run_id, detected_at)
  SELECT account_id, id, 'run_failed', 'low', 'open', 'a', 'a', 'none', id, created_at FROM run
), recommendation AS (
  INSERT INTO recommendations (account_id, id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at)
  SELECT account_id, id, 't', 'social', 'r', 'r', 'low', 'done', '{}', '{}', id, created_at, created_at FROM run
), endpoint AS (
  INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events) SELECT account_id, account_id, 1, 'https://a.example', '', '{*}' FROM given
), event AS (
  INSERT INTO events (account_id, id, type, subject_id, data) SELECT account_id, id, CASE status WHEN 'completed' THEN 'run.completed' ELSE 'alert.opened' END, id, '{}' FROM run
), delivery AS (
  INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT account_id, id, account_id FROM run
), queue AS (
  INSERT INTO webhook_queues (account_id, wake_at) SELECT account_id, now() FROM given
), brand AS (
  INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  SELECT account_id, account_id, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active' FROM given
), revision AS (
  INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) SELECT account_id, 1, now(), now() FROM given
), schedule AS (
  INSERT INTO schedules (account_id, id, name, status, cadence, at_minute, time_zone, model_ids, question_ids, repetitions,
    measurement_type, locale, country, language, min_change, next_at, credential_id, created_at, updated_at)
  SELECT account_id, account_id, 'daily', 'active', 'daily', 0, 'UTC', model_ids, question_ids, 1, 'grounded', 'it-IT',
    'IT', 'it', 1000, now() + interval '1 day', credential_id, now(), now() FROM run WHERE status = 'queued'
), uncounted AS (
  INSERT INTO visibility_backlog (account_id, run_id) SELECT account_id, id FROM run
)
INSERT INTO api_rate_limit_buckets (account_id, credential_id, window_start, used, granted, rate_limit)
SELECT account_id, credential_id, date_trunc('minute', now()), 1, 1, 60 FROM run WHERE status = 'queued'`

// fill writes accountRows for an account that has one key.
func fill(t *testing.T, pool *pgxpool.Pool, account string, days int) {
	t.Helper()
	id, err := store.ParseID("acct", account)
	must(t, err)
	if _, err := pool.Exec(t.Context(), accountRows, id, days); err != nil {
		t.Fatal(err)
	}
	// The open run stays in the backlog.
	if n, err := counting.New(pool).Recount(t.Context()); n != 2 || err != nil {
		t.Fatalf("%d answers are counted (%v), want 2", n, err)
	}
}

// accountRowCounts counts the rows of an account in each table that has any.
func accountRowCounts(t *testing.T, pool *pgxpool.Pool, account string) map[string]int {
	t.Helper()
	id, err := store.ParseID("acct", account)
	must(t, err)
	counts := queryTexts(t, pool, `
SELECT format('SELECT %L, (SELECT count(*) FROM %1$I WHERE %I = $1)', table_name, min(column_name)) FROM information_schema.columns
WHERE table_schema = 'public' AND column_name IN ('account_id', 'owner') AND data_type = 'uuid' GROUP BY table_name`)
	n := map[string]int{}
	type count struct {
		Table string
		Rows  int
	}
	for _, c := range collect[count](t, pool, strings.Join(counts, " UNION ALL "), id) {
		if c.Rows > 0 {
			n[c.Table] = c.Rows
		}
	}
	return n
}

// customers makes a catalog, and the accounts A and B with a key each. The keys were revoked an hour ago, so that an
// erasure waits for nothing. It returns the ids of the accounts.
func customers(t *testing.T, pool *pgxpool.Pool) (a, b string) {
	t.Helper()
	storetest.Exec(t, pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`,
		`INSERT INTO providers (code, name) VALUES ('p', 'P')`,
		`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
		VALUES ('m', 'M', 'p', 'm', 'active', '{grounded}', true)`,
		`INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ('q', '?', 'it', 'IT', 't', '{}', 'active')`,
		`INSERT INTO accounts (id, name, plan_code) SELECT gen_random_uuid(), name, 'p' FROM unnest('{A,B}'::text[]) name`,
		`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes, revoked_at)
		SELECT id, id, 'k', 'aiv_live_00000000', sha256(name::bytea), '{}', now() - interval '1 hour' FROM accounts`)
	ids := collect[struct{ ID store.ID }](t, pool, `SELECT id FROM accounts ORDER BY name`)
	return ids[0].ID.Text("acct"), ids[1].ID.Text("acct")
}

var intact = step{line: "verify", stdout: fmt.Sprintf("%d of %[1]d invariants hold.\n", len(capability.Invariants()))}

func TestPurgeCommand(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	a, b := customers(t, pool)
	fill(t, pool, a, 500)
	fill(t, pool, b, 300)
	before := prints{"usage -json", 0, `\{.*\{`}.expect(t, s.url())
	const notATime = ` is neither a time such as 2026-01-31T00:00:00Z nor an age such as 400d`
	s.run(t, []step{
		misuse("purge", "", "aiv purge requires -runs-before"),
		misuse("purge", "-runs-before yesterday", `-runs-before: "yesterday"`+notATime),
		misuse("purge", "-runs-before -5h", `-runs-before: "-5h"`+notATime),
		misuse("purge", "-runs-before 1.5d", `-runs-before: "1.5d"`+notATime),
		misuse("purge", "-runs-before 2999-01-01T00:00:00Z", "-runs-before: the time is in the future"),
		misuse("purge", "-runs-before 400d -remember 1h", "-remember must be at least 24h: clients are promised that time"),
		{line: "purge -runs-before 2020-01-01T00:00:00Z", stdout: "Deleted 0 runs with 0 jobs that finished before 2020-01-01T00:00:00Z.\n"},
		{line: "purge -runs-before 400d -json", stdout: `{"finished_before":"{time}","runs":1,"jobs":2}` + "\n"},
		intact,
		{line: "purge -runs-before 400d -json", stdout: `{"finished_before":"{time}","runs":0,"jobs":0}` + "\n"},
		{line: "purge -runs-before 1h -json", stdout: `{"finished_before":"{time}","runs":1,"jobs":2}` + "\n"},
		intact,
	})
	equal(t, "usage", prints{"usage -json", 0, ""}.expect(t, s.url()), before)
}

// TestEraseCommand erases one of two accounts, and repeats an erasure that was interrupted at its end.
func TestEraseCommand(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	a, b := customers(t, pool)
	fill(t, pool, a, 100)
	fill(t, pool, b, 100)
	complete, other := accountRowCounts(t, pool, a), accountRowCounts(t, pool, b)
	for _, table := range []string{"measurement_runs", "idempotency_records", "own_question_tags", "own_question_accounts",
		"alerts", "webhook_deliveries", "webhook_queues", "brands", "brand_revisions", "visibility_facts",
		"visibility_backlog", "visibility_recounts", "schedules", "api_rate_limit_buckets", "credentials"} {
		if complete[table] == 0 {
			t.Errorf("the account has no rows in %s", table)
		}
	}
	s.names = []string{a, "{a}", b, "{b}"}
	s.run(t, []step{
		misuse("accounts erase", "{a}", "aiv accounts erase requires -confirm"),
		{line: "accounts erase {a} -confirm B", code: 1, stderr: `aiv: the name of account {a} is not "B"; nothing was changed; see aiv accounts list` + "\n"},
		fails("accounts erase acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -confirm B",
			"there is no account {acct1}; see aiv accounts list"),
	})
	equal(t, "rows of the account after an erasure that was not confirmed", accountRowCounts(t, pool, a), complete)
	s.run(t, []step{
		{line: "accounts erase {a} -confirm A", stdout: "Account {a} is erased: 2 runs with 5 jobs, 1 schedule, 1 brand, 1 question, " +
			"4 recommendations and alerts and 2 events are deleted. Its usage totals are kept.\n"},
		intact,
		{line: "keys list -account {a}", stdout: "There are no credentials; create one with aiv keys create.\n"},
		fails("keys create -account {a} -name late -scopes ''", "account {a} is erased"),
		{line: "accounts erase {a} -confirm A", code: 1, stderr: `aiv: the name of account {a} is not "A"; nothing was changed; see aiv accounts list` + "\n"},
		{line: "accounts erase {a} -confirm erased -json",
			stdout: `{"id":"{a}","runs":0,"jobs":0,"schedules":0,"brands":0,"questions":0,"recommendations_and_alerts":0,"events":0}` + "\n"},
	})
	equal(t, "rows of the erased account", accountRowCounts(t, pool, a),
		map[string]int{"account_months": complete["account_months"]})
	equal(t, "rows of the other account", accountRowCounts(t, pool, b), other)
	names := queryTexts(t, pool, `SELECT name FROM accounts ORDER BY name COLLATE "C"`)
	equal(t, "accounts", names, []string{"B", "erased"})
	equal(t, "audit log", queryTexts(t, pool, `SELECT action FROM audit_log WHERE subject = $1 ORDER BY id`, a),
		[]string{"accounts.erase", "accounts.erase.end", "accounts.erase", "accounts.erase.end"})
}

// TestEraseInterrupted stops an erasure while it waits for requests that were admitted before the keys were revoked.
// The database is consistent, the account has no data that a client can read, and its name still confirms a repetition.
func TestEraseInterrupted(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	a, _ := customers(t, pool)
	fill(t, pool, a, 100)
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = NULL`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- testProgram(io.Discard, stderr, s.env).Run(ctx, []string{"accounts", "erase", a, "-confirm", "A"})
		stderr.Close()
	}()
	printed := bufio.NewScanner(r)
	printed.Scan()
	if want := regexp.MustCompile(`^Waiting [0-9m]+s for requests that were admitted before the keys were revoked\.$`); !want.Match(printed.Bytes()) {
		t.Errorf("printed %q, want %s", printed.Text(), want)
	}
	cancel()
	printed.Scan()
	const want = "aiv: stopped after 2 runs; what was deleted stays deleted, and the same command deletes the rest: interrupted"
	if c := <-code; c != 1 || printed.Text() != want {
		t.Errorf("exit %d, %q; want 1, %q", c, printed.Text(), want)
	}
	s.run(t, []step{intact})
	equal(t, "rows", accountRowCounts(t, pool, a), map[string]int{
		"account_months": 2, "credentials": 1, "api_rate_limit_buckets": 1, "webhook_endpoints": 1, "webhook_queues": 1,
		"job_turns": 1, "brand_revisions": 1, "visibility_recounts": 1,
	})
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = now() - interval '1 hour'`)
	s.names = []string{a, "{a}"}
	s.run(t, []step{
		{line: "accounts erase {a} -confirm A", stdout: "Account {a} is erased: 0 runs with 0 jobs, 0 schedules, 0 brands, 0 questions, " +
			"0 recommendations and alerts and 0 events are deleted. Its usage totals are kept.\n"},
	})
}
