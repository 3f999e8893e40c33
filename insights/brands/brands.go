// Package brands keeps the brands of accounts: what the answers of models are searched for.
//
// It owns the tables brands and brand_revisions. Package gateway calls it for the routes under /v1/brands, package
// visibility reads the active brands to count answers, and command aiv brands imports and lists brands. Package match
// decides what an answer mentions.
package brands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands/match"
	"aiv/store"
)

// A Brand is a brand of an account.
type Brand struct {
	ID        store.ID
	Number    int32 // in the account, from 1; never used for another brand
	Kind      string
	Name      string
	Aliases   []string
	Domains   []string // as match.Domain returns them
	Exclude   []string
	MatchCase bool
	Status    string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Kinds and statuses of a brand.
const (
	Own        = "own"
	Competitor = "competitor"

	Active   = "active"
	Archived = "archived"
)

// Kinds and Statuses list them.
var (
	Kinds    = []string{Own, Competitor}
	Statuses = []string{Active, Archived}
)

// Bounds of the brands of an account and of the texts of a brand, in characters.
const (
	MaxActive = 100
	MaxBrands = 1000
	MaxTexts  = 20 // of each list
	MaxName   = 128
	MaxDomain = 512 // as it is sent
)

// Errors on which callers decide. None contains an id. Their texts are for logs; the gateway has texts for customers.
var (
	ErrNotFound      = errors.New("the account has no such brand")
	ErrTooManyActive = fmt.Errorf("the account has %d active brands, the maximum", MaxActive)
	ErrTooMany       = fmt.Errorf("the account has %d brands, the maximum", MaxBrands)
)

// An InvalidError reports texts that a brand cannot have.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string { return e.Faults[0].At + " " + e.Faults[0].Detail }

// A Version identifies the active brands of an account. Two changes can have one revision: after a failover or a restore
// that lost the first of them. Their times differ.
type Version struct {
	Revision  int64 // how often the active brands have changed
	ChangedAt time.Time
}

// Equal reports whether v and w identify the same brands.
func (v Version) Equal(w Version) bool {
	return v.Revision == w.Revision && v.ChangedAt.Equal(w.ChangedAt)
}

// ReadVersion returns the version of the active brands of an account, which is zero before its first brand.
func ReadVersion(ctx context.Context, db store.Querier, account store.ID) (v Version, err error) {
	err = v.scan(db.QueryRow(ctx, selectVersion, account))
	return v, err
}

// ReadVersions returns the versions of accounts, in their order, in one round trip.
func ReadVersions(ctx context.Context, tx store.Tx, accounts []store.ID) ([]Version, error) {
	versions := make([]Version, len(accounts))
	var b pgx.Batch
	for i, account := range accounts {
		b.Queue(selectVersion, account).QueryRow(versions[i].scan)
	}
	return versions, tx.SendBatch(ctx, &b).Close()
}

const selectVersion = `SELECT revision, changed_at FROM brand_revisions WHERE account_id = $1`

// scan reads the row of selectVersion. No row leaves v zero.
func (v *Version) scan(row pgx.Row) error {
	err := row.Scan(&v.Revision, &v.ChangedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// ReadActive returns the active brands of an account, by name and id, and the account's revision. The revision and
// the brands are from one statement, so they belong together in any transaction.
func ReadActive(ctx context.Context, db store.Querier, account store.ID) (active []Brand, revision int64, err error) {
	rows, err := db.Query(ctx, selectActive, account)
	if err != nil {
		return nil, 0, err
	}
	active, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Brand, err error) {
		// The id is NULL in the row that has only the revision.
		var id *store.ID
		err = row.Scan(&revision, &id, &b.Number, &b.Kind, &b.Name, &b.Aliases, &b.Domains, &b.Exclude, &b.MatchCase, &b.Status, &b.CreatedAt, &b.UpdatedAt)
		if id != nil {
			b.ID = *id
		}
		return b, err
	})
	if len(active) == 1 && active[0].ID == (store.ID{}) {
		active = nil // only the revision
	}
	return active, revision, err
}

// selectActive returns one row without a brand if there is none. The condition on account_id is repeated for each
// table, because Citus must find the server of each.
const selectActive = `
SELECT COALESCE(r.revision, 0), b.id, COALESCE(b.number, 0), COALESCE(b.kind, ''), COALESCE(b.name, ''), b.aliases, b.domains, b.exclude,
  COALESCE(b.match_case, false), COALESCE(b.status, ''), COALESCE(b.created_at, now()), COALESCE(b.updated_at, now())
FROM (SELECT $1::uuid AS account_id) a
LEFT JOIN brand_revisions r ON r.account_id = a.account_id AND r.account_id = $1
LEFT JOIN brands b ON b.account_id = a.account_id AND b.account_id = $1 AND b.status = 'active'
ORDER BY b.name COLLATE "C", b.id`

// Compile returns a matcher of brands.
func Compile(all []Brand) *match.Matcher {
	compiled := make([]match.Brand, len(all))
	for i, b := range all {
		compiled[i] = match.Brand{ID: b.ID.Text("brand"), Own: b.Kind == Own, Name: b.Name, Aliases: b.Aliases, Domains: b.Domains,
			Exclude: b.Exclude, MatchCase: b.MatchCase}
	}
	return match.Compile(compiled)
}

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
