package brands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/jsonl"
)

// Admin imports and lists brands for an operator. Each command adds a row to audit_log in its transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // the operator, for audit_log
}

// Import reads a JSON Lines file of brands and returns the number of its lines. A line replaces the brand with its id
// or, if it has none, the account's brand with an equal name, an active one first, unless another line has the id of
// that brand; otherwise it adds a brand. The rules of Create and Update apply to the result of the whole file, so two
// brands may exchange their names. If any line is invalid, Import changes nothing and its error lists the lines.
// Importing a file again changes nothing.
// progress, which may be nil, is called with the number of lines read so far.
func (a *Admin) Import(ctx context.Context, file io.Reader, progress func(lines int)) (lines int, err error) {
	// Lines with errors are added as well. Read then returns an error, and nothing is written.
	byAccount := make(map[store.ID][]*incoming)
	err = jsonl.Read(file, progress, func(l *jsonl.Line) {
		in := readLine(l)
		byAccount[in.account] = append(byAccount[in.account], in)
		lines++
	})
	if err != nil {
		return 0, err
	}
	// Only requests that change brands of these accounts wait for the transaction.
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error { return a.write(ctx, tx, byAccount, lines) })
	if err != nil {
		return 0, err
	}
	return lines, nil
}

// lockImports makes imports take turns. On Citus their waits for the brands of an account would end after a second.
const lockImports = `SELECT pg_advisory_xact_lock(hashtext('aiv brands import'))`

// write does everything that an import changes, in its transaction. The brands of accounts are locked in the order of
// their ids.
func (a *Admin) write(ctx context.Context, tx pgx.Tx, byAccount map[store.ID][]*incoming, lines int) error {
	if _, err := tx.Exec(ctx, lockImports); err != nil {
		return err
	}
	var errs []error
	changed := 0
	accounts := slices.SortedFunc(maps.Keys(byAccount), store.ID.Compare)
	for _, account := range accounts {
		m, err := mergeLines(ctx, tx, account, byAccount[account])
		// The errors of all accounts are collected, so that one import reports all lines.
		if e, ok := errors.AsType[*lineError](err); ok {
			errs = append(errs, e.error)
			continue
		}
		if err != nil {
			return err
		}
		changed += len(m.changed)
		// The transaction will be rolled back. The remaining accounts are only checked.
		if len(errs) > 0 {
			continue
		}
		if err := m.write(ctx, tx); err != nil {
			return err
		}
	}
	// An import that changes nothing is not audited.
	if err := errors.Join(errs...); err != nil || changed == 0 {
		return err
	}
	if err := store.LockKept(ctx, tx, accounts); err != nil {
		return err
	}
	return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "brands.import", Subject: "brands",
		Detail: map[string]any{"brands": lines, "rows_changed": changed}})
}

// A lineError reports lines that cannot be imported.
type lineError struct{ error }

// mergeLines locks the brands of an account and returns what lines change of them.
func mergeLines(ctx context.Context, tx pgx.Tx, account store.ID, lines []*incoming) (*merge, error) {
	var erased bool
	err := tx.QueryRow(ctx, `SELECT erased_at IS NOT NULL FROM accounts WHERE id = $1`, account).Scan(&erased)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, eachLine(lines, "unknown account")
	case err != nil:
		return nil, err
	case erased:
		return nil, eachLine(lines, "the account is erased")
	}
	s, err := lock(ctx, tx, account)
	if err != nil {
		return nil, err
	}
	all, err := store.Collect(ctx, tx, pgx.RowToStructByPos[Brand],
		`SELECT `+columns+` FROM brands WHERE account_id = $1 ORDER BY created_at, id`, account)
	if err != nil {
		return nil, err
	}
	// The result of all lines is computed in memory and checked as a whole before write writes it.
	m := &merge{state: s, all: all, lines: make(map[store.ID]int), changed: make(map[store.ID]bool), created: make(map[store.ID]bool)}
	// Join ignores errors that are nil.
	errs := append(m.add(lines), m.check())
	foreign, err := m.foreign(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(append(errs, foreign...)...); err != nil {
		return nil, &lineError{err}
	}
	return m, nil
}

// eachLine returns an error for each line of an account, up to 20.
func eachLine(lines []*incoming, reason string) error {
	var errs []error
	for _, in := range lines[:min(len(lines), 20)] {
		errs = append(errs, fmt.Errorf("line %d: %s", in.line, reason))
	}
	return &lineError{errors.Join(errs...)}
}

// foreign returns an error for each new brand whose id belongs to a brand of another account: ids are unique across
// accounts, although the primary key includes the account.
func (m *merge) foreign(ctx context.Context, tx pgx.Tx) (errs []error, err error) {
	// The ids of this account's brands are known already, so what is found is of another account.
	rows, err := tx.Query(ctx, `SELECT id FROM brands WHERE id = ANY ($1)`, slices.Collect(maps.Keys(m.created)))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[store.ID])
	for _, id := range found {
		errs = append(errs, fmt.Errorf("line %d: id belongs to another account", m.lines[id]))
	}
	return errs, err
}

// write writes the brands that change.
func (m *merge) write(ctx context.Context, tx pgx.Tx) error {
	for i := range m.all {
		b := &m.all[i]
		var err error
		switch {
		case !m.changed[b.ID]:
			continue
		case m.created[b.ID]:
			_, err = m.insert(ctx, tx, b)
		default:
			_, err = m.update(ctx, tx, b)
		}
		if err != nil {
			return err
		}
	}
	// Changes of archived brands only do not change the revision.
	if !m.active {
		return nil
	}
	return m.raise(ctx, tx)
}

// A ListedBrand is a brand as operators see it.
type ListedBrand struct {
	AccountID store.ID
	Revision  int64 // of the account's brands
	Brand
}

// List returns the brands of an account, or of all accounts if it is nil, by account and oldest first. An empty status
// selects all.
func (a *Admin) List(ctx context.Context, account *store.ID, status string) (all []ListedBrand, err error) {
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listAll, account, status)
		if err != nil {
			return err
		}
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ListedBrand]); err != nil {
			return err
		}
		// A list is audited, too: it shows the data of customers.
		subject := "brands"
		if account != nil {
			subject = account.Text("acct")
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "brands.list", Subject: subject, Detail: map[string]any{"brands": len(all)}})
	})
	return all, err
}

const listAll = `
SELECT b.account_id, COALESCE(r.revision, 0), b.id, b.number, b.kind, b.name, b.aliases, b.domains, b.exclude, b.match_case, b.status,
  b.created_at, b.updated_at
FROM brands b LEFT JOIN brand_revisions r ON r.account_id = b.account_id
WHERE ($1::uuid IS NULL OR b.account_id = $1) AND ($2 = '' OR b.status = $2)
ORDER BY b.account_id, b.created_at, b.id`
