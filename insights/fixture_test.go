package insights_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights"
	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var kept storetest.Kept[*pgxpool.Pool]

// A site is a database with an operator who imports.
type site struct {
	insights.Admin
	t *testing.T
}

// newSite returns a site without accounts for a test, which runs in parallel with others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	pool := kept.Take(t, storetest.New, func(pool *pgxpool.Pool) error {
		return storetest.Clear(pool, "recommendations alerts events webhook_deliveries webhook_queues measurement_runs "+
			"credentials audit_log accounts", "")
	})
	return &site{insights.Admin{Pool: pool, Actor: "ann", Events: eventData{}, Record: webhooks.RecordMany}, t}
}

// try imports lines.
func (s *site) try(lines ...string) error {
	_, err := s.Import(s.t.Context(), strings.NewReader(strings.Join(lines, "")), nil)
	return err
}

func (s *site) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.Pool.Exec(s.t.Context(), sql, args...)
	must(s.t, err)
}

// state has the rows of each table that an import writes.
func (s *site) state() string {
	s.t.Helper()
	return storetest.Value[string](s.t, s.Pool, `
SELECT concat_ws(E'\n', (SELECT jsonb_agg(r ORDER BY id) FROM recommendations r), (SELECT jsonb_agg(a ORDER BY id) FROM alerts a),
  (SELECT jsonb_agg(l ORDER BY id) FROM audit_log l))`)
}

// customer is an account with one run.
type customer struct{ account, run store.ID }

func (s *site) customer() customer {
	s.t.Helper()
	c := customer{store.NewID(), store.NewID()}
	credential := store.NewID()
	s.exec(`
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
	return line(`{"kind":"recommendation","account_id":"`+c.account.Text("acct")+`","type":"add_faq","category":"on_page","title":"Title",
"summary":"Summary","priority":"low","status":"suggested","model_ids":["m"],"question_ids":[],"run_id":null,
"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`, set)
}

// alert returns a line, changed as in recommendation.
func (c customer) alert(set ...string) string {
	return line(`{"kind":"alert","account_id":"`+c.account.Text("acct")+`","type":"visibility_drop","severity":"low","status":"open",
"title":"Title","message":"Message","metric":"visibility","direction":"down","current_value":0.25,"baseline_value":0.5,
"model_id":"m","question_id":"q","country":"IT","run_id":null,"detected_at":"2026-01-01T00:00:00Z","resolved_at":null}`, set)
}

func line(text string, set []string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		panic(err)
	}
	for _, s := range set {
		name, value, _ := strings.Cut(s, ":")
		if members[name] = json.RawMessage(value); value == "" {
			delete(members, name)
		}
	}
	changed, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(changed) + "\n"
}

// ref, idOf and at return a member for line: an id, the id of the line, and midnight UTC of a day in January 2026.
func ref(name, prefix string, id store.ID) string { return fmt.Sprintf("%s:%q", name, id.Text(prefix)) }

func idOf(prefix string, id store.ID) string { return ref("id", prefix, id) }

func at(name string, n int) string { return fmt.Sprintf(`%s:"2026-01-%02dT00:00:00Z"`, name, n) }

// eventData encodes the title only.
type eventData struct{}

func (eventData) Recommendation(r *insights.Recommendation) []byte { return titleOf(r.ID, r.Title) }

func (eventData) Alert(a *insights.Alert) []byte { return titleOf(a.ID, a.Title) }

func titleOf(id store.ID, title string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"title":%q}`, id.UUID(), title)
}

var must, equal = storetest.Must, storetest.Equal
