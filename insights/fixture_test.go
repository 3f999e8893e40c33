package insights_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights"
	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var kept, keptHot storetest.Kept[*pgxpool.Pool]

// newPool returns a pool of plain sessions for a database without accounts.
func newPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return kept.Take(t, storetest.New, clear)
}

// newHotPool is newPool for hot sessions.
func newHotPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return keptHot.Take(t, storetest.Hot, clear)
}

func clear(pool *pgxpool.Pool) error {
	return storetest.Clear(pool, "recommendations alerts events webhook_deliveries webhook_queues measurement_runs credentials audit_log accounts", "")
}

// customer is an account with one run.
type customer struct{ account, run store.ID }

func newCustomer(t testing.TB, pool *pgxpool.Pool) customer {
	t.Helper()
	c := customer{store.NewID(), store.NewID()}
	credential := store.NewID()
	execute(t, pool, `
WITH plan AS (INSERT INTO plans (code, features) VALUES ('p', '{api_access}') ON CONFLICT DO NOTHING),
account AS (INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')),
credential AS (INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
  VALUES ($2, $1, 'c', 'aiv_live_00000000', sha256(uuid_send($2)), '{}'))
INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
  locale, country, language, total_jobs)
VALUES ($1, $3, $2, 'grounded', 'AIVM-1.0', '{m}', '{q}', 1, 'it-IT', 'IT', 'it', 1)`, c.account, credential, c.run)
	return c
}

// recommendation returns a line. set changes members: each element is NAME:VALUE, and an empty value removes the
// member.
func (c customer) recommendation(set ...string) string {
	return line(`{"kind":"recommendation","account_id":"`+c.account.Text("acct")+`","type":"add_faq","category":"on_page","title":"Title",`+
		`"summary":"Summary","priority":"low","status":"suggested","model_ids":["m"],"question_ids":[],"run_id":null,`+
		`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`, set)
}

// alert returns a line, changed as in recommendation.
func (c customer) alert(set ...string) string {
	return line(`{"kind":"alert","account_id":"`+c.account.Text("acct")+`","type":"visibility_drop","severity":"low","status":"open",`+
		`"title":"Title","message":"Message","metric":"visibility","direction":"down","current_value":0.25,"baseline_value":0.5,`+
		`"model_id":"m","question_id":"q","country":"IT","run_id":null,"detected_at":"2026-01-01T00:00:00Z","resolved_at":null}`, set)
}

func line(text string, set []string) string {
	for _, s := range set {
		name, value, _ := strings.Cut(s, ":")
		member := ""
		if value != "" {
			member = `,"` + name + `":` + value
		}
		before, after, found := strings.Cut(text, `,"`+name+`":`)
		if !found { // add the member
			text = strings.TrimSuffix(text, "}") + member + "}"
			continue
		}
		// In the templates no value contains a comma or a brace.
		text = before + member + after[strings.IndexAny(after, ",}"):]
	}
	return text + "\n"
}

func quoted(id store.ID, prefix string) string { return `"` + id.Text(prefix) + `"` }

// newImport returns a function that imports lines.
func newImport(t testing.TB, pool *pgxpool.Pool) func(lines ...string) error {
	admin := &insights.Admin{Pool: pool, Actor: "test", Events: eventData{}, Record: webhooks.Record}
	return func(lines ...string) error {
		_, err := admin.Import(t.Context(), strings.NewReader(strings.Join(lines, "")), nil)
		return err
	}
}

func execute(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	must(t, err)
}

// day and dayText return midnight UTC of a day in January 2026.
func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

func dayText(n int) string { return fmt.Sprintf(`"2026-01-%02dT00:00:00Z"`, n) }

// eventData encodes the title only.
type eventData struct{}

func (eventData) Recommendation(r *insights.Recommendation) []byte {
	return titleOf(r.ID, r.Title)
}

func (eventData) Alert(a *insights.Alert) []byte { return titleOf(a.ID, a.Title) }

func titleOf(id store.ID, title string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"title":%q}`, id.UUID(), title)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
