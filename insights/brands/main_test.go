package brands_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/brands"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture is a database with an account.
type fixture struct {
	pool    *pgxpool.Pool
	account store.ID
}

var kept storetest.Kept[*pgxpool.Pool]

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{pool: kept.Take(t, storetest.New, func(pool *pgxpool.Pool) error {
		return storetest.Clear(pool, "visibility_recounts brands brand_revisions audit_log accounts plans", "")
	})}
	storetest.Exec(t, f.pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`)
	f.account = f.newAccount(t)
	return f
}

func (f *fixture) newAccount(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	f.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, id)
	return id
}

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := f.pool.Exec(t.Context(), sql, args...)
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// named returns a change to a competitor with a name and aliases.
func named(name string, aliases ...string) brands.Change {
	return brands.Change{Kind: new(brands.Competitor), Name: &name, Aliases: append([]string{}, aliases...), MatchCase: new(false)}
}

var archive = brands.Change{Status: new(brands.Archived)}

func (f *fixture) create(t testing.TB, c brands.Change) *brands.Brand {
	t.Helper()
	if faults := c.Check(); len(faults) > 0 {
		t.Fatal(faults)
	}
	b, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), c)
	must(t, err)
	return b
}

// update changes a brand and returns the account's revision after it.
func (f *fixture) update(t testing.TB, id store.ID, c brands.Change) (*brands.Brand, int64) {
	t.Helper()
	b, err := brands.Update(t.Context(), f.pool, f.account, id, c)
	must(t, err)
	return b, f.revision(t)
}

func (f *fixture) revision(t testing.TB) int64 {
	t.Helper()
	v, err := brands.ReadVersion(t.Context(), f.pool, f.account)
	must(t, err)
	return v.Revision
}

// fill adds brands by SQL, with the numbers after those that the account has.
func (f *fixture) fill(t testing.TB, n int, status string) {
	t.Helper()
	f.exec(t, `
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
SELECT $1, gen_random_uuid(), (SELECT count(*) FROM brands WHERE account_id = $1) + i, 'own', 'filler ' || $3 || i, '{}', '{}', '{}', false, $3
FROM generate_series(1, $2::int) i`, f.account, n, status)
	f.exec(t, `
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) VALUES ($1, 1, now(), now()) ON CONFLICT DO NOTHING`, f.account)
}

// conflictsOf returns the pointers of a conflict.
func conflictsOf(err error) (at []string) {
	if e, ok := errors.AsType[*brands.ConflictError](err); ok {
		for _, c := range e.Conflicts {
			at = append(at, c.At)
		}
	}
	return at
}
