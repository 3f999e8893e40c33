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

// shop is a database with two accounts and a catalog in it.
type shop struct {
	pool         *pgxpool.Pool
	admin        *catalog.Admin
	ours, theirs store.ID
}

func newShop(t *testing.T, lines ...string) *shop {
	t.Helper()
	s := &shop{pool: storetest.New(t), ours: store.NewID(), theirs: store.NewID()}
	s.admin = &catalog.Admin{Pool: s.pool, Actor: "olga"}
	s.exec(t, `INSERT INTO plans (code, features) VALUES ('p', '{}')`)
	s.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'us', 'p'), ($2, 'them', 'p')`, s.ours, s.theirs)
	if len(lines) > 0 {
		s.load(t, lines...)
	}
	return s
}

func (s *shop) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// load imports lines that must be right.
func (s *shop) load(t *testing.T, lines ...string) {
	t.Helper()
	if _, err := s.admin.Import(t.Context(), strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) revision(t *testing.T) (revision int64) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `SELECT `+catalog.RevisionSQL).Scan(&revision); err != nil {
		t.Fatal(err)
	}
	return revision
}

// now is the catalog as a request that begins now sees it.
func (s *shop) now(t *testing.T, c *catalog.Catalog) *catalog.Snapshot {
	t.Helper()
	snapshot, err := c.At(t.Context(), s.revision(t))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

const (
	acme = `{"kind":"provider","code":"acme","name":"Acme"}`

	modelForm = `{"kind":"model","id":%q,"name":"One","provider":"acme","provider_model":"one-1","status":"active",` +
		`"measurement_types":["grounded"],"countries":null,"languages":["it","de-AT"],"grounded_search":true}`
)

func model(id string) string { return fmt.Sprintf(modelForm, id) }

// question is a line; owner is an account or the zero id for a question that is everybody's.
func question(id string, owner store.ID, status string) string {
	account := "null"
	if owner != (store.ID{}) {
		account = `"` + owner.Text("acct") + `"`
	}
	return fmt.Sprintf(`{"kind":"question","id":%q,"account_id":%s,"text":"Which?","language":"it","country":"IT","topic":"shoes",`+
		`"tags":["a","b"],"status":%q}`, id, account, status)
}

func methodology(version, status string, types string) string {
	return fmt.Sprintf(`{"kind":"methodology","version":%q,"status":%q,"measurement_types":[%s],"max_repetitions":20,"max_jobs":100000}`,
		version, status, types)
}
