package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a database with two accounts and a catalog.
type fixture struct {
	pool         *pgxpool.Pool
	admin        *catalog.Admin
	ours, theirs store.ID
}

func newFixture(t *testing.T, lines ...string) *fixture {
	t.Helper()
	f := &fixture{pool: storetest.New(t), ours: store.NewID(), theirs: store.NewID()}
	f.admin = &catalog.Admin{Pool: f.pool, Actor: "olga"}
	f.exec(t, `INSERT INTO plans (code, features) VALUES ('p', '{}')`)
	f.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'us', 'p'), ($2, 'them', 'p')`, f.ours, f.theirs)
	f.load(t, lines...)
	return f
}

func (f *fixture) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := f.pool.Exec(t.Context(), sql, args...)
	must(t, err)
}

var must, equal = storetest.Must, storetest.Equal

func (f *fixture) importLines(t *testing.T, lines ...string) (catalog.Imported, error) {
	return f.admin.Import(t.Context(), strings.NewReader(strings.Join(lines, "\n")), nil)
}

// load imports valid lines.
func (f *fixture) load(t *testing.T, lines ...string) {
	t.Helper()
	if len(lines) > 0 {
		_, err := f.importLines(t, lines...)
		must(t, err)
	}
}

func (f *fixture) revision(t *testing.T) int64 {
	t.Helper()
	return storetest.Value[int64](t, f.pool, `SELECT `+catalog.RevisionSQL)
}

// now returns the snapshot of the current revision.
func (f *fixture) now(t *testing.T, c *catalog.Catalog) *catalog.Snapshot {
	t.Helper()
	snapshot, err := c.At(t.Context(), f.revision(t))
	must(t, err)
	return snapshot
}

// state counts the rows of each table that an import writes, and has what a repeated import must not change.
func (f *fixture) state(t *testing.T) string {
	t.Helper()
	return storetest.Value[string](t, f.pool, `SELECT concat_ws(' ', (SELECT count(*) FROM providers), (SELECT count(*) FROM models),
		(SELECT count(*) FROM questions), (SELECT count(*) FROM own_questions), (SELECT count(*) FROM methodologies),
		(SELECT min(created_at) FROM questions),
		(SELECT min(created_at) FROM own_questions), (SELECT revision FROM catalog_revision), (SELECT count(*) FROM audit_log))`)
}

const acme = `{"kind":"provider","code":"acme","name":"Acme"}`

func model(id string) string {
	return fmt.Sprintf(`{"kind":"model","id":%q,"name":"One","provider":"acme","provider_model":"one-1",`+
		`"status":"active","measurement_types":["grounded"],"countries":null,"languages":["it","de-AT"],`+
		`"grounded_search":true}`, id)
}

var shared store.ID // owns the questions of all accounts

func question(id string, owner store.ID) string {
	account := "null"
	if owner != shared {
		account = `"` + owner.Text("acct") + `"`
	}
	return fmt.Sprintf(`{"kind":"question","id":%q,"account_id":%s,"text":"Which?","language":"it","country":"IT","topic":"shoes",`+
		`"tags":["a","b"],"status":"active"}`, id, account)
}

func methodology(version, status string, types string) string {
	return fmt.Sprintf(`{"kind":"methodology","version":%q,"status":%q,"measurement_types":[%s],"max_repetitions":20,"max_jobs":100000}`,
		version, status, types)
}

// edit replaces the first of each two texts in a line by the second.
func edit(line string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(line, pairs[i]) {
			panic(pairs[i] + " is not in " + line)
		}
		line = strings.Replace(line, pairs[i], pairs[i+1], 1)
	}
	return line
}

func archived(line string) string { return edit(line, `"active"`, `"archived"`) }
