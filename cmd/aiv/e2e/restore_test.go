package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/store/private"
	"aiv/store/storetest"
)

// A deployment is a database with a customer that has runs and insights, and the responses that the customer gets.
type deployment struct {
	url     string
	key     madeKey
	asks    []string // addresses
	answers []string
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	u, _, account, key := databaseOfCustomer(t, 100_000)
	d := &deployment{url: u, key: key}
	file := filepath.Join(t.TempDir(), "insights.jsonl")
	lines := fmt.Sprintf(`{"kind":"recommendation","account_id":%[1]q,"type":"t","category":"on_page","title":"T","summary":"S","priority":"high","status":"suggested","model_ids":["m"],"question_ids":["q1"],"run_id":null,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}
{"kind":"alert","account_id":%[1]q,"type":"visibility_drop","severity":"high","status":"open","title":"T","message":"M","metric":null,"direction":"down","current_value":0.25,"baseline_value":1,"model_id":"m","question_id":"q1","country":"IT","run_id":null,"detected_at":"2026-01-02T03:04:05Z","resolved_at":null}
`, account)
	must(t, os.WriteFile(file, []byte(lines), 0o600))
	cli[any](t, u, "insights", "import", file)
	own := fmt.Sprintf(`{"kind":"question","id":"own","account_id":%q,"text":"Mine?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}`, account)
	must(t, os.WriteFile(file, []byte(own), 0o600))
	cli[any](t, u, "catalog", "import", file)

	p := startServe(t, u)
	for i := range 5 {
		if status, _ := d.order(t, p, i); status != 202 {
			t.Fatalf("run %d: got %d", i, status)
		}
	}
	first := p.get(t, "?path=/v1/runs&limit=2", key.Key)
	cursor := member(t, first.body, "next_cursor")
	d.asks = []string{
		"?path=/v1/me", "?path=/v1/runs&limit=2", "?path=/v1/runs&limit=2&cursor=" + url.QueryEscape(cursor), "?path=/v1/runs&model_id=m",
		"?path=/v1/runs/" + member(t, first.body, "id"), "?path=/v1/catalog/models", "?path=/v1/catalog/questions", "?path=/v1/recommendations",
		"?path=/v1/alerts", "?path=/v1/alerts&severity=low",
	}
	d.answers = d.ask(t, p)
	must(t, p.stop())
	return d
}

// order creates or replays the run of an idempotency key.
func (d *deployment) order(t *testing.T, p *process, i int) (status int, replayed string) {
	t.Helper()
	a, err := p.do(t.Context(), "POST", "", d.key.Key, "order-"+strconv.Itoa(i), testRun)
	must(t, err)
	return a.status, a.header.Get("Idempotent-Replayed")
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
	if status, replayed := d.order(t, p, 3); status != 202 || replayed != "true" {
		t.Errorf("the retry of a run: got %d, replayed %q", status, replayed)
	}
	if status, replayed := d.order(t, p, 1000); status != 202 || replayed != "" {
		t.Errorf("a new run: got %d, replayed %q", status, replayed)
	}
	if err := p.stop(); err != nil {
		t.Errorf("aiv serve ended with %v\n%s", err, p.log.end())
	}
}

// member returns the first value of a string member with a name.
func member(t *testing.T, body, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, `"`+name+`":"`)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatalf("there is no %s in %s", name, body)
	}
	return value
}

// measure creates a brand and has the runs answered. The responses then show the measurement too.
func (d *deployment) measure(t *testing.T) {
	t.Helper()
	p, dispatch := startServe(t, d.url), startDispatch(t, d.url)
	const brand = `{"path":"/v1/brands","method":"POST","body":{"kind":"own","name":"Attempt","domains":["example.org"]}}`
	if a, err := p.do(t.Context(), "POST", "", d.key.Key, "", brand); err != nil || a.status != 201 {
		t.Fatalf("creating a brand: %v %v", a, err)
	}
	w := &workerClient{dispatch.base, newWorker(t, d.url).Token}
	jobs, err := w.claim(200, 0)
	if err != nil || len(jobs) != 30 {
		t.Fatalf("%d jobs are claimed (%v), want 30", len(jobs), err)
	}
	if _, err := w.settle(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	d.asks = append(d.asks, "?path=/v1/brands", "?path=/v1/metrics&group_by=model,question", "?path=/v1/sources")
	d.answers = d.ask(t, p)
	if metrics := d.answers[len(d.answers)-2]; !strings.Contains(metrics, `"mentions":15,`) {
		t.Errorf("the brand is not mentioned: %s", metrics)
	}
	for _, p := range []*process{p, dispatch} {
		must(t, p.stop())
	}
}

// TestRestoredDatabaseServesTheSame: a database restored by pg_restore gives customers the same responses, also to a
// key that was revoked after the dump.
func TestRestoredDatabaseServesTheSame(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.measure(t)
	restored := storetest.Empty(t)
	dump, _, err := private.Command("pg_dump", "-Fc", "-d", d.url)
	must(t, err)
	restore, _, err := private.Command("pg_restore", "--exit-on-error", "-d", restored)
	must(t, err)
	restore.Stdin = bytes.NewReader(output(t, dump))
	cli[any](t, d.url, "keys", "revoke", d.key.ID)
	output(t, restore)
	if code, stdout, stderr := aiv(t.Context(), "status", "-database-url", restored); code != 0 {
		t.Errorf("aiv status: exit %d\n%s%s", code, stdout, stderr)
	}
	d.goesOn(t, restored)
}

func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args[0], err, &errs)
	}
	return out.Bytes()
}

// TestUpgradeFromEachRelease: a database as each earlier release left it is refused by aiv serve until aiv migrate has
// been there, and is then the same service to customers. The short form has the databases of the first and of the
// latest release: what the first left passes through all later migrations.
func TestUpgradeFromEachRelease(t *testing.T) {
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
			t.Parallel()
			old := storetest.Empty(t)
			storetest.MigrateAsThen(t, old, all[:n])
			copyRows(t, d.url, old)
			const refusal = "; run `aiv migrate`"
			if code, _, stderr := aiv(t.Context(), "serve", "-database-url", old, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"); code != 1 || !strings.Contains(stderr, refusal) {
				t.Errorf("aiv serve: exit %d, %s", code, stderr)
			}
			cli[any](t, old, "migrate")
			d.goesOn(t, old)
		})
	}
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
		var rows bytes.Buffer
		now := strings.Replace(columns, "jobs_running", "jobs_returned", 1) // which has another meaning; no run is running
		query := `SELECT ` + now + ` FROM ` + table + where
		if table == "questions" { // which had own questions too
			query = `SELECT ` + now + ` FROM (SELECT *, NULL::uuid AS account_id FROM questions
				UNION ALL SELECT id, text, language, country, topic, tags, status, created_at, account_id FROM own_questions) q`
		}
		if _, err := source.PgConn().CopyTo(t.Context(), &rows, `COPY (`+query+`) TO STDOUT`); err != nil {
			t.Fatal(err)
		}
		tag, err := target.PgConn().CopyFrom(t.Context(), &rows, `COPY `+table+` (`+columns+`) FROM STDIN`)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if tag.RowsAffected() == 0 {
			t.Errorf("there is nothing in %s to upgrade", table)
		}
	}
}

func dial(t *testing.T, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	must(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}
