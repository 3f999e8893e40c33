package brands_test

import (
	"errors"
	"slices"
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

var must, equal = storetest.Must, storetest.Equal

// named returns a change to a competitor with a name and aliases.
func named(name string, aliases ...string) brands.Change {
	return brands.Change{Kind: new(brands.Competitor), Name: &name, Aliases: append([]string{}, aliases...), MatchCase: new(false)}
}

var archive, reactivate = brands.Change{Status: new(brands.Archived)}, brands.Change{Status: new(brands.Active)}

func (f *fixture) tryCreate(t testing.TB, c brands.Change) (*brands.Brand, error) {
	return brands.Create(t.Context(), f.pool, f.account, store.NewID(), c)
}

func (f *fixture) tryUpdate(t testing.TB, id store.ID, c brands.Change) error {
	_, err := brands.Update(t.Context(), f.pool, f.account, id, c)
	return err
}

func (f *fixture) create(t testing.TB, c brands.Change) *brands.Brand {
	t.Helper()
	b, err := f.tryCreate(t, c)
	must(t, err)
	return b
}

func (f *fixture) update(t testing.TB, id store.ID, c brands.Change) *brands.Brand {
	t.Helper()
	b, err := brands.Update(t.Context(), f.pool, f.account, id, c)
	must(t, err)
	return b
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

// isConflict reports whether an error is of conflicts at exactly these texts.
func isConflict(err error, at ...string) bool {
	e, ok := errors.AsType[*brands.ConflictError](err)
	return ok && slices.EqualFunc(e.Conflicts, at, func(c brands.Conflict, at string) bool { return c.At == at })
}
