package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/capability"
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
	rows, err := pool.Query(t.Context(), `SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND (column_name IN ('account_id', 'owner') AND data_type = 'uuid')`)
	must(t, err)
	columns := map[string]string{}
	for rows.Next() {
		var table, column string
		must(t, rows.Scan(&table, &column))
		if columns[table] != "account_id" {
			columns[table] = column
		}
	}
	var counts []string
	for table, column := range columns {
		counts = append(counts, fmt.Sprintf(`SELECT '%s', (SELECT count(*) FROM %[1]s WHERE %s = $1)`, table, column))
	}
	rows, err = pool.Query(t.Context(), strings.Join(counts, " UNION ALL "), id)
	must(t, err)
	n := map[string]int{}
	var table string
	var found int
	_, err = pgx.ForEachRow(rows, []any{&table, &found}, func() error {
		if found > 0 {
			n[table] = found
		}
		return nil
	})
	must(t, err)
	return n
}

// customers makes the accounts A and B with a key each, and returns their ids.
func customers(t *testing.T, pool *pgxpool.Pool) (a, b string) {
	t.Helper()
	storetest.Exec(t, pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`)
	for _, name := range []string{"A", "B"} {
		id := store.NewID()
		for _, sql := range []string{
			`INSERT INTO accounts (id, name, plan_code) VALUES ($1, $2::text, 'p')`,
			`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES ($1, $1, 'k', 'aiv_live_00000000', sha256($2::text::bytea), '{}')`,
		} {
			if _, err := pool.Exec(t.Context(), sql, id, name); err != nil {
				t.Fatal(err)
			}
		}
		a, b = b, id.Text("acct")
	}
	return a, b
}

var intact = step{line: "verify", stdout: fmt.Sprintf("%d of %[1]d invariants hold.\n", len(capability.Invariants()))}

func TestPurgeCommand(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
	pool := connect(t, s.env["DATABASE_URL"])
	a, b := customers(t, pool)
	fill(t, pool, a, 500)
	fill(t, pool, b, 300)
	usage := func() string {
		_, stdout, _ := aiv(t.Context(), "usage", "-json", "-database-url", s.env["DATABASE_URL"])
		return stdout
	}
	before := usage()
	wrong := "Run `aiv purge -h` for help.\n"
	notATime := ` is neither a time such as 2026-01-31T00:00:00Z nor an age such as 400d` + "\n" + wrong
	s.run(t, []step{
		{line: "purge", code: 2, stderr: "aiv: aiv purge requires -runs-before\n" + wrong},
		{line: "purge -runs-before yesterday", code: 2, stderr: `aiv: -runs-before: "yesterday"` + notATime},
		{line: "purge -runs-before -5h", code: 2, stderr: `aiv: -runs-before: "-5h"` + notATime},
		{line: "purge -runs-before 1.5d", code: 2, stderr: `aiv: -runs-before: "1.5d"` + notATime},
		{line: "purge -runs-before 2999-01-01T00:00:00Z", code: 2, stderr: "aiv: -runs-before: the time is in the future\n" + wrong},
		{line: "purge -runs-before 400d -remember 1h", code: 2, stderr: "aiv: -remember must be at least 24h: clients are promised that time\n" + wrong},
		{line: "purge -runs-before 2020-01-01T00:00:00Z", stdout: "Deleted 0 runs with 0 jobs that finished before 2020-01-01T00:00:00Z.\n"},
		{line: "purge -runs-before 400d -json", stdout: `{"finished_before":"{time}","runs":1,"jobs":2}` + "\n"},
		intact,
		{line: "purge -runs-before 400d -json", stdout: `{"finished_before":"{time}","runs":0,"jobs":0}` + "\n"},
		{line: "purge -runs-before 1h -json", stdout: `{"finished_before":"{time}","runs":1,"jobs":2}` + "\n"},
		intact,
	})
	if diff := cmp.Diff(before, usage()); diff != "" {
		t.Errorf("usage (-before +after):\n%s", diff)
	}
}

// TestEraseCommand erases one of two accounts, and repeats an erasure that was interrupted at its end.
func TestEraseCommand(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
	pool := connect(t, s.env["DATABASE_URL"])
	a, b := customers(t, pool)
	fill(t, pool, a, 100)
	fill(t, pool, b, 100)
	// Its keys were revoked an hour ago, so that nothing needs to be waited for.
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = now() - interval '1 hour'`)
	complete, other := accountRowCounts(t, pool, a), accountRowCounts(t, pool, b)
	for _, table := range []string{"measurement_runs", "idempotency_records", "own_question_tags", "own_question_accounts",
		"alerts", "webhook_deliveries", "webhook_queues", "brands", "brand_revisions", "visibility_facts",
		"visibility_backlog", "visibility_recounts", "api_rate_limit_buckets", "credentials"} {
		if complete[table] == 0 {
			t.Errorf("the account has no rows in %s", table)
		}
	}
	s.names = []string{a, "{a}", b, "{b}"}
	s.run(t, []step{
		{line: "accounts erase {a}", code: 2, stderr: "aiv: aiv accounts erase requires -confirm\nRun `aiv accounts erase -h` for help.\n"},
		{line: "accounts erase {a} -confirm B", code: 1, stderr: `aiv: the name of account {a} is not "B"; nothing was changed; see aiv accounts list` + "\n"},
		{line: "accounts erase acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -confirm B", code: 1, stderr: "aiv: there is no account {acct1}; see aiv accounts list\n"},
	})
	if diff := cmp.Diff(complete, accountRowCounts(t, pool, a)); diff != "" {
		t.Errorf("rows of the account after an erasure that was not confirmed (-want +got):\n%s", diff)
	}
	s.run(t, []step{
		{line: "accounts erase {a} -confirm A", stdout: "Account {a} is erased: 2 runs with 5 jobs, 1 question, 4 recommendations and alerts and 2 events are deleted. " +
			"Its usage totals are kept.\n"},
		intact,
		{line: "keys list -account {a}", stdout: "There are no credentials; create one with aiv keys create.\n"},
		{line: "keys create -account {a} -name late -scopes ''", code: 1, stderr: "aiv: account {a} is erased\n"},
		{line: "accounts erase {a} -confirm A", code: 1, stderr: `aiv: the name of account {a} is not "A"; nothing was changed; see aiv accounts list` + "\n"},
		{line: "accounts erase {a} -confirm erased -json",
			stdout: `{"id":"{a}","runs":0,"jobs":0,"questions":0,"recommendations_and_alerts":0,"events":0}` + "\n"},
	})
	if diff := cmp.Diff(map[string]int{"account_months": complete["account_months"]}, accountRowCounts(t, pool, a)); diff != "" {
		t.Errorf("rows of the erased account (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other, accountRowCounts(t, pool, b)); diff != "" {
		t.Errorf("rows of the other account (-want +got):\n%s", diff)
	}
	var names, actions []string
	err := pool.QueryRow(t.Context(), `SELECT (SELECT array_agg(name ORDER BY id) FROM accounts), (SELECT array_agg(action ORDER BY id) FROM audit_log WHERE subject = $1)`,
		a).Scan(&names, &actions)
	must(t, err)
	if diff := cmp.Diff([]string{"erased", "B"}, names); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	want := []string{"accounts.erase", "accounts.erase.end", "accounts.erase", "accounts.erase.end"}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// TestEraseInterrupted stops an erasure while it waits for requests that were admitted before the keys were revoked.
// The database is consistent, the account has no data that a client can read, and its name still confirms a repetition.
func TestEraseInterrupted(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
	pool := connect(t, s.env["DATABASE_URL"])
	a, _ := customers(t, pool)
	fill(t, pool, a, 100)
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
	if diff := cmp.Diff(map[string]int{"account_months": 2, "credentials": 1, "api_rate_limit_buckets": 1, "webhook_endpoints": 1, "webhook_queues": 1, "job_turns": 1, "brand_revisions": 1,
		"visibility_recounts": 1},
		accountRowCounts(t, pool, a)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = now() - interval '1 hour'`)
	s.names = []string{a, "{a}"}
	s.run(t, []step{
		{line: "accounts erase {a} -confirm A", stdout: "Account {a} is erased: 0 runs with 0 jobs, 0 questions, 0 recommendations and alerts and 0 events are deleted. " +
			"Its usage totals are kept.\n"},
	})
}
