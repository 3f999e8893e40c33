package brands

import (
	"context"

	"aiv/store"
)

// A Filter selects brands of an account. Empty members select all.
type Filter struct{ Status, Kind string }

// List returns a page of an account's brands, newest first, and one more if there is one.
func List(ctx context.Context, db store.Querier, account store.ID, f Filter, page store.Page) ([]Brand, error) {
	q := store.KeysetQuery{Select: `SELECT ` + columns + ` FROM brands`, Order: []string{"created_at", "id"}, Page: page}
	q.Where("account_id = ?", account)
	q.Filter("status", f.Status)
	q.Filter("kind", f.Kind)
	return store.ReadPage[Brand](ctx, db, &q)
}

// Get returns a brand, or ErrNotFound.
func Get(ctx context.Context, db store.Querier, account, id store.ID) (*Brand, error) {
	return store.ReadOne[Brand](ctx, db, ErrNotFound, `SELECT `+columns+` FROM brands WHERE account_id = $1 AND id = $2`, account, id)
}

// CountActive returns the number of active brands of all accounts.
func CountActive(ctx context.Context, db store.Querier) (n int64, err error) {
	return n, db.QueryRow(ctx, `SELECT count(*) FROM brands WHERE status = 'active'`).Scan(&n)
}

// columns are the columns of Brand.
const columns = `id, number, kind, name, aliases, domains, exclude, match_case, status, created_at, updated_at`
