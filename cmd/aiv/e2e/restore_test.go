package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// firstRelease is the last migration of 0.1.0.
const firstRelease = 4

// TestLaterDatabasesServeTheSame: a database as the first release left it is refused by aiv serve until aiv migrate, with
// all later migrations, has been there, and is then the same service to customers: reads get the same responses, a
// retried run is replayed, and new runs are created. So is one that was restored by pg_restore, also to a key that was
// revoked after the dump.
func TestLaterDatabasesServeTheSame(t *testing.T) {
	t.Parallel()
	source, _, account, key := databaseOfCustomer(t)
	imported := filepath.Join(t.TempDir(), "lines.jsonl")
	for command, lines := range map[string]string{
		"insights": `{"kind":"recommendation","account_id":%[1]q,"type":"t","category":"on_page","title":"T","summary":"S","priority":"high","status":"suggested","model_ids":["m"],"question_ids":["q1"],"run_id":null,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}
{"kind":"alert","account_id":%[1]q,"type":"visibility_drop","severity":"high","status":"open","title":"T","message":"M","metric":null,"direction":"down","current_value":0.25,"baseline_value":1,"model_id":"m","question_id":"q1","country":"IT","run_id":null,"detected_at":"2026-01-02T03:04:05Z","resolved_at":null}
`,
		"catalog": `{"kind":"question","id":"own","account_id":%q,"text":"Mine?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}`,
	} {
		must(t, os.WriteFile(imported, fmt.Appendf(nil, lines, account), 0o600))
		cli[any](t, source, command, "import", imported)
	}
	order := func(p *process, name, replayed string) {
		t.Helper()
		a := p.send(t, 202, "POST", "", key.Key, name, testRun)
		storetest.Equal(t, replayed, a.header.Get("Idempotent-Replayed"), "replayed ", name)
	}
	serve, dispatch := startServe(t, source), startDispatch(t, source)
	for i := range 5 {
		order(serve, fmt.Sprint("order-", i), "")
	}
	first := serve.get(t, "?path=/v1/runs&limit=2", key.Key).body
	asks := []string{
		"?path=/v1/me", "?path=/v1/runs&limit=2", "?path=/v1/runs&limit=2&cursor=" + url.QueryEscape(member(t, first, "next_cursor")),
		"?path=/v1/runs&model_id=m", "?path=/v1/runs/" + member(t, first, "id"), "?path=/v1/catalog/models", "?path=/v1/catalog/questions",
		"?path=/v1/recommendations", "?path=/v1/alerts",
	}
	snapshotTime := regexp.MustCompile(`"as_of":"[^"]*",`)
	ask := func(p *process) (answers []string) {
		t.Helper()
		for _, address := range asks {
			a := p.get(t, address, key.Key)
			answers = append(answers, fmt.Sprintf("%s\n%d %s", address, a.status, snapshotTime.ReplaceAllString(a.body, "")))
			if a.status != 200 {
				t.Errorf("%s: got %d %s", address, a.status, a.body)
			}
		}
		return answers
	}
	answers := ask(serve)
	// goesOn serves from another database.
	goesOn := func(databaseURL string) {
		t.Helper()
		p := startServe(t, databaseURL)
		storetest.Equal(t, answers, ask(p), "answers")
		order(p, "order-3", "true")
		order(p, "order-1000", "")
		stops(t, p)
	}

	all, err := filepath.Glob("../../../store/schema/migrations/*.sql")
	must(t, err)
	old := storetest.Empty(t)
	storetest.MigrateAsThen(t, old, all[:firstRelease])
	copyRows(t, source, old)
	refuses(t, old, "; run `aiv migrate`", onFreePorts("serve")...)
	cli[any](t, old, "migrate")
	goesOn(old)
	// With a brand and answered runs, the responses show the measurement too.
	serve.send(t, 201, "POST", "/v1/brands", key.Key, "", `{"kind":"own","name":"Attempt","domains":["example.org"]}`)
	w := newWorkerClient(t, source, dispatch)
	w.settles(t, w.claims(t, 30))
	asks = append(asks, "?path=/v1/brands", "?path=/v1/metrics&group_by=model,question", "?path=/v1/sources")
	if answers = ask(serve); !strings.Contains(answers[len(answers)-2], `"mentions":15,`) {
		t.Errorf("the brand is not mentioned: %s", answers[len(answers)-2])
	}
	stops(t, serve, dispatch)
	restored := storetest.Empty(t)
	dump, err := storetest.Command("pg_dump", "-Fc", "-d", source)
	must(t, err)
	var archive bytes.Buffer
	dump.Stdout = &archive
	must(t, dump.Run())
	cli[any](t, source, "keys", "revoke", key.ID)
	restore, err := storetest.Command("pg_restore", "--exit-on-error", "-d", restored)
	must(t, err)
	restore.Stdin = &archive
	must(t, restore.Run())
	cli[any](t, restored, "status")
	goesOn(restored)
}

// copyRows copies what release 0.1.0 would have written, first what others refer to.
func copyRows(t *testing.T, from, to string) {
	t.Helper()
	source, target := dial(t, from), dial(t, to)
	for _, table := range strings.Fields(`plans accounts credentials api_rate_limit_buckets audit_log providers provider_dependencies
		models questions measurement_runs measurement_run_models measurement_jobs usage_records account_months idempotency_records
		recommendations alerts catalog_revision shared_secrets`) {
		var columns string
		must(t, target.QueryRow(t.Context(), `SELECT string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns
			WHERE table_name = $1 AND is_generated = 'NEVER'`, table).Scan(&columns))
		rows := table
		switch table {
		case "catalog_revision", "shared_secrets": // a migration has put a row there
			_, err := target.Exec(t.Context(), `TRUNCATE `+table)
			must(t, err)
			if table == "shared_secrets" {
				rows += ` WHERE name = 'cursor'` // later migrations add the others
			}
		case "questions": // which had own questions too
			rows = `(SELECT *, NULL::uuid AS account_id FROM questions
				UNION ALL SELECT id, text, language, country, topic, tags, status, created_at, account_id FROM own_questions) q`
		}
		now := strings.Replace(columns, "jobs_running", "jobs_returned", 1) // which has another meaning; no run is running
		var copied bytes.Buffer
		_, err := source.PgConn().CopyTo(t.Context(), &copied, `COPY (SELECT `+now+` FROM `+rows+`) TO STDOUT`)
		must(t, err)
		tag, err := target.PgConn().CopyFrom(t.Context(), &copied, `COPY `+table+` (`+columns+`) FROM STDIN`)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %d rows, %v", table, tag.RowsAffected(), err)
		}
	}
}
