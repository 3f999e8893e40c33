package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// Months are in UTC, and the first and the last one are included.
func TestUsageByMonth(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.newAccount(t)
	s.prints(t, "accounts create -name B -plan p", "Account {acct2} was created: \"B\" on plan p.\n")
	pool := connect(t, s.url())
	a, b := s.values("{acct1}"), s.values("{acct2}")
	writeRun(t, pool, b, "2026-09-30T23:59:59.999999Z", 1)
	writeRun(t, pool, b, "2026-10-01T00:00:00Z", 2)
	writeRun(t, pool, b, "2026-10-31T23:59:59.999999Z", 3)
	writeRun(t, pool, a, "2026-10-15T00:00:00Z", 4)
	writeRun(t, pool, a, "2026-11-01T01:00:00+02:00", 5)
	writeRun(t, pool, a, "2026-12-31T23:00:00-01:00", 6)
	storetest.Exec(t, pool, `
UPDATE measurement_runs SET status = 'running', started_at = created_at, jobs_completed = 2, jobs_failed = 1 WHERE total_jobs = 4;
UPDATE measurement_runs SET status = 'completed', started_at = created_at, finished_at = created_at, jobs_completed = 5 WHERE total_jobs = 5;
UPDATE account_months SET jobs_completed = 5 WHERE account_id = (SELECT account_id FROM measurement_runs WHERE total_jobs = 5) AND jobs_ordered = 9`)
	s.follow(t, "testdata/stories/usage.txt")
}

// writeRun writes a run of the account with its usage, as if it had been created then.
func writeRun(t *testing.T, pool *pgxpool.Pool, account, at string, jobs int) {
	t.Helper()
	id, err := store.ParseID("acct", account)
	must(t, err)
	_, err = pool.Exec(t.Context(), `
WITH credential AS (
  INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES ($2, $1, 'c', 'aiv_live_00000000', sha256(uuid_send($2)), '{}')
), month AS (
  INSERT INTO account_months AS m (account_id, month, runs, jobs_ordered) VALUES ($1, date_trunc('month', $5::text::timestamptz, 'UTC'), 1, $4::integer)
  ON CONFLICT (account_id, month) DO UPDATE SET runs = m.runs + 1, jobs_ordered = m.jobs_ordered + excluded.jobs_ordered
), run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, created_at)
  VALUES ($1, $3, $2, 'grounded', 'AIVM-1.0', '{m}', '{q}', $4::integer, 'it-IT', 'IT', 'it', $4::integer, $5::text::timestamptz)
)
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
VALUES ($1, $3, $2, $4::integer, 'grounded', 'AIVM-1.0', $5::text::timestamptz)`, id, store.NewID(), store.NewID(), jobs, at)
	must(t, err)
}

// TestStories follows the stories of an account with a final run, whose answers are so large that a page of jobs ends before
// the limit, an open one, a schedule and a webhook.
func TestStories(t *testing.T) {
	t.Parallel()
	pool := consistent(t)
	s := &story{env: map[string]string{"DATABASE_URL": pool.Config().ConnString(), "AIV_ACTOR": "ann@desk"}}
	account := storetest.Value[store.ID](t, pool, `SELECT id FROM accounts`)
	writeRun(t, pool, account.Text("acct"), "2026-03-01T00:00:00Z", 1)
	storetest.Exec(t, pool, `UPDATE job_results SET answer = json_build_object('text', repeat('x', 3000000)) WHERE answer IS NOT NULL`)
	s.follow(t, "testdata/stories/runs.txt")
	s.follow(t, "testdata/stories/schedules.txt")
	storetest.Exec(t, pool, `INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
		SELECT id, gen_random_uuid(), 1, 'https://a.example/hook', '', '{*}' FROM accounts`)
	s.follow(t, "testdata/stories/webhooks.txt")
	storetest.Exec(t, pool, `UPDATE schedules SET status = 'paused', paused_reason = 'customer', next_at = NULL`)
	prints{s.values("schedules resume {sched1} -note x"), 1, "the customer paused"}.expect(t, s.url())
	equal(t, 1, storetest.Value[int](t, pool, `SELECT count(*) FROM events WHERE type = 'schedule.paused'`), "events of pauses")
}

// TestActor: the audit log names who runs a command.
func TestActor(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	for _, test := range []struct {
		env        map[string]string
		args, want string // the beginning, before the host
	}{
		{map[string]string{"AIV_ACTOR": "env"}, "-actor flag", "flag"},
		{map[string]string{"AIV_ACTOR": "env", "SUDO_USER": "sue"}, "", "env"},
		{map[string]string{"SUDO_USER": "sue"}, "", "sue@"},
		{nil, "", "@"},
	} {
		p := testProgram(io.Discard, io.Discard, test.env)
		code := p.Run(t.Context(), words("plans set p -features x -database-url "+s.url()+" "+test.args))
		actor := storetest.Value[string](t, pool, `SELECT actor FROM audit_log ORDER BY id DESC LIMIT 1`)
		if code != 0 || !strings.Contains(actor, test.want) || !strings.Contains(test.want, "@") && actor != test.want {
			t.Errorf("%v %s: exit %d, actor %q, want %q", test.env, test.args, code, actor, test.want)
		}
	}
}

// TestKeysArePrinted: what a terminal would obey is not printed of names. A key that could not be printed is reported.
// testdata/commands/keys.txt has the rest.
func TestKeysArePrinted(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	create := "keys create -account " + s.newAccount(t) + " -scopes runs:read -json -name "
	expect(t, s.url(), prints{create + "'two\tcells\x1b[2J\u202e'", 0, `two\\tcells\\u001b\[2J`},
		prints{"keys list", 0, `\ttwo�cells�\[2J�\t`}, prints{"keys list '-\x1b[2J'", 2, `has no flag -�\[2J\n`})
	var stderr strings.Builder
	p := testProgram(full{}, &stderr, s.env)
	const unshown = "was created, but its key could not be printed; revoke it: write the output: no space left on device\n"
	if code := p.Run(t.Context(), words(create+"n")); code != 1 || !strings.HasSuffix(stderr.String(), unshown) {
		t.Errorf("exit %d, stderr %q; want 1, %q", code, &stderr, unshown)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

const sampleCatalog = `{"kind":"methodology","version":"AIVM-1.0","status":"active","measurement_types":["grounded"],"max_repetitions":20,"max_jobs":100000}
{"kind":"provider","code":"acme","name":"Acme <AI>"}
{"kind":"model","id":"acme/one","name":"One","provider":"acme","provider_model":"one-1","status":"active","measurement_types":["grounded"],"countries":null,"languages":["it"],"grounded_search":true}
{"kind":"question","id":"q1","account_id":null,"text":"Chi?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
`

// TestCatalogIsExportedToAFile: the file is replaced, and keeps its mode. testdata/commands/catalog.txt has the rest.
func TestCatalogIsExportedToAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	must(t, os.WriteFile(out, []byte("old"), 0o600))
	must(t, os.Chmod(out, 0o660))
	s := newStory(t)
	s.importSample(t)
	s.prints(t, "catalog export -o "+out, "Exported 4 lines to "+out+".\n")
	text, err := os.ReadFile(out)
	must(t, err)
	equal(t, sampleCatalog, string(text), "exported file")
	info, err := os.Stat(out)
	must(t, err)
	equal(t, os.FileMode(0o660), info.Mode(), "mode of the file that was replaced")
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files left: %s", left)
	}
}
