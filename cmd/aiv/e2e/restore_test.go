package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store/storetest"
)

// A deployment is a database with a customer that has runs and insights, and the responses that the customer gets.
type deployment struct {
	url     string
	key     madeKey
	asks    []string // addresses
	answers []string
}

// TestLaterDatabasesServeTheSame: a database as each earlier release left it is refused by aiv serve until aiv migrate has
// been there, and is then the same service to customers. So is one that was restored by pg_restore, also to a key that
// was revoked after the dump. The short form has the databases of the first and of the latest release: what the first
// left passes through all later migrations.
func TestLaterDatabasesServeTheSame(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	all, err := filepath.Glob("../../../store/schema/migrations/*.sql")
	if err != nil || len(all) < firstRelease {
		t.Fatalf("migrations: %v, %v", all, err)
	}
	for n := firstRelease; n < len(all); n++ {
		if n > firstRelease && n < len(all)-1 && !storetest.Long() {
			continue
		}
		t.Run(fmt.Sprintf("from %04d", n), func(t *testing.T) {
			old := storetest.Empty(t)
			storetest.MigrateAsThen(t, old, all[:n])
			copyRows(t, d.url, old)
			refuses(t, old, "; run `aiv migrate`", onFreePorts("serve")...)
			cli[any](t, old, "migrate")
			d.goesOn(t, old)
		})
	}
	t.Run("restored", func(t *testing.T) {
		d.measure(t)
		restored := storetest.Empty(t)
		dump, err := storetest.Command("pg_dump", "-Fc", "-d", d.url)
		must(t, err)
		var archive bytes.Buffer
		dump.Stdout = &archive
		must(t, dump.Run())
		cli[any](t, d.url, "keys", "revoke", d.key.ID)
		restore, err := storetest.Command("pg_restore", "--exit-on-error", "-d", restored)
		must(t, err)
		restore.Stdin = &archive
		must(t, restore.Run())
		cli[any](t, restored, "status")
		d.goesOn(t, restored)
	})
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	u, _, account, key := databaseOfCustomer(t)
	d := &deployment{url: u, key: key}
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	for command, lines := range map[string]string{
		"insights": `{"kind":"recommendation","account_id":%[1]q,"type":"t","category":"on_page","title":"T","summary":"S","priority":"high","status":"suggested","model_ids":["m"],"question_ids":["q1"],"run_id":null,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}
{"kind":"alert","account_id":%[1]q,"type":"visibility_drop","severity":"high","status":"open","title":"T","message":"M","metric":null,"direction":"down","current_value":0.25,"baseline_value":1,"model_id":"m","question_id":"q1","country":"IT","run_id":null,"detected_at":"2026-01-02T03:04:05Z","resolved_at":null}
`,
		"catalog": `{"kind":"question","id":"own","account_id":%q,"text":"Mine?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}`,
	} {
		must(t, os.WriteFile(file, fmt.Appendf(nil, lines, account), 0o600))
		cli[any](t, u, command, "import", file)
	}
	p := startServe(t, u)
	for i := range 5 {
		d.order(t, p, i, "")
	}
	first := p.get(t, "?path=/v1/runs&limit=2", key.Key)
	cursor := member(t, first.body, "next_cursor")
	d.asks = []string{
		"?path=/v1/me", "?path=/v1/runs&limit=2", "?path=/v1/runs&limit=2&cursor=" + url.QueryEscape(cursor), "?path=/v1/runs&model_id=m",
		"?path=/v1/runs/" + member(t, first.body, "id"), "?path=/v1/catalog/models", "?path=/v1/catalog/questions", "?path=/v1/recommendations",
		"?path=/v1/alerts",
	}
	d.answers = d.ask(t, p)
	stops(t, p)
	return d
}

// order creates or replays the run of an idempotency key.
func (d *deployment) order(t *testing.T, p *process, i int, replayed string) {
	t.Helper()
	a := p.send(t, 202, "POST", "", d.key.Key, fmt.Sprint("order-", i), testRun)
	if got := a.header.Get("Idempotent-Replayed"); got != replayed {
		t.Errorf("run %d: replayed %q, want %q", i, got, replayed)
	}
}

var snapshotTime = regexp.MustCompile(`"as_of":"[^"]*",`)

func (d *deployment) ask(t *testing.T, p *process) (answers []string) {
	t.Helper()
	for _, address := range d.asks {
		a := p.get(t, address, d.key.Key)
		answers = append(answers, fmt.Sprintf("%s\n%d %s", address, a.status, snapshotTime.ReplaceAllString(a.body, "")))
		if a.status != 200 {
			t.Errorf("%s: got %d %s", address, a.status, a.body)
		}
	}
	return answers
}

// goesOn serves from another database: reads get the same responses, a retried run is replayed, and new runs are
// created.
func (d *deployment) goesOn(t *testing.T, databaseURL string) {
	t.Helper()
	p := startServe(t, databaseURL)
	if diff := cmp.Diff(d.answers, d.ask(t, p)); diff != "" {
		t.Errorf("answers (-before +after):\n%s", diff)
	}
	d.order(t, p, 3, "true")
	d.order(t, p, 1000, "")
	stops(t, p)
}

// measure creates a brand and has the runs answered. The responses then show the measurement too.
func (d *deployment) measure(t *testing.T) {
	t.Helper()
	p, dispatch := startServe(t, d.url), startDispatch(t, d.url)
	p.send(t, 201, "POST", "/v1/brands", d.key.Key, "", `{"kind":"own","name":"Attempt","domains":["example.org"]}`)
	w := newWorkerClient(t, d.url, dispatch)
	w.settles(t, w.claims(t, 200, 30))
	d.asks = append(d.asks, "?path=/v1/brands", "?path=/v1/metrics&group_by=model,question", "?path=/v1/sources")
	d.answers = d.ask(t, p)
	if metrics := d.answers[len(d.answers)-2]; !strings.Contains(metrics, `"mentions":15,`) {
		t.Errorf("the brand is not mentioned: %s", metrics)
	}
	stops(t, p, dispatch)
}

// firstRelease is the last migration of 0.1.0.
const firstRelease = 4

// The tables of 0.1.0, those that others refer to first. A migration fills methodologies.
var oldTables = strings.Fields(`plans accounts credentials api_rate_limit_buckets audit_log providers provider_dependencies
	models questions measurement_runs measurement_run_models measurement_jobs usage_records account_months idempotency_records recommendations alerts
	catalog_revision shared_secrets`)

// copyRows copies what an earlier release would have written.
func copyRows(t *testing.T, from, to string) {
	t.Helper()
	source, target := dial(t, from), dial(t, to)
	for _, table := range oldTables {
		var columns string
		must(t, target.QueryRow(t.Context(), `SELECT string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns
			WHERE table_name = $1 AND is_generated = 'NEVER'`, table).Scan(&columns))
		where := ""
		if table == "shared_secrets" {
			where = ` WHERE name = 'cursor'` // later migrations add the others
		}
		if slices.Contains([]string{"catalog_revision", "shared_secrets"}, table) { // a migration has put a row there
			_, err := target.Exec(t.Context(), `DELETE FROM `+table+where)
			must(t, err)
		}
		now := strings.Replace(columns, "jobs_running", "jobs_returned", 1) // which has another meaning; no run is running
		query := `SELECT ` + now + ` FROM ` + table + where
		if table == "questions" { // which had own questions too
			query = `SELECT ` + now + ` FROM (SELECT *, NULL::uuid AS account_id FROM questions
				UNION ALL SELECT id, text, language, country, topic, tags, status, created_at, account_id FROM own_questions) q`
		}
		var rows bytes.Buffer
		_, err := source.PgConn().CopyTo(t.Context(), &rows, `COPY (`+query+`) TO STDOUT`)
		must(t, err)
		tag, err := target.PgConn().CopyFrom(t.Context(), &rows, `COPY `+table+` (`+columns+`) FROM STDIN`)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %d rows, %v", table, tag.RowsAffected(), err)
		}
	}
}
