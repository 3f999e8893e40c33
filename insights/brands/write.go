package brands

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Create adds an active brand, from a change that Check accepted and that sets the kind and the name. It returns a
// *ConflictError, ErrTooManyActive or ErrTooMany.
func Create(ctx context.Context, pool *pgxpool.Pool, account, id store.ID, c Change) (made *Brand, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// The bounds and the uniqueness are exact because each change of the account's brands holds this lock until
		// it commits.
		s, err := lock(ctx, tx, account)
		if err != nil {
			return err
		}
		b, err := s.draft(Brand{ID: id}, c)
		if err != nil {
			return err
		}
		if made, err = s.insert(ctx, tx, &b); err != nil {
			return err
		}
		return s.raise(ctx, tx)
	})
	return made, err
}

// Update changes a brand, by a change that Check accepted. It returns ErrNotFound, an *InvalidError, a *ConflictError
// or ErrTooManyActive.
func Update(ctx context.Context, pool *pgxpool.Pool, account, id store.ID, c Change) (changed *Brand, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		s, err := lock(ctx, tx, account)
		if err != nil {
			return err
		}
		before, err := Get(ctx, tx, account, id)
		if err != nil {
			return err
		}
		after, faults := c.apply(*before)
		if len(faults) > 0 {
			return &InvalidError{faults}
		}
		// Without a change, the revision and the time of the update stay.
		if changed = before; after.equal(before) {
			return nil
		}
		if err := s.check(&after); err != nil {
			return err
		}
		if changed, err = s.update(ctx, tx, &after); err != nil || before.Status == Archived && after.Status == Archived {
			return err
		}
		return s.raise(ctx, tx)
	})
	return changed, err
}

// A state is what the rules for the brands of an account depend on.
type state struct {
	account store.ID
	active  []Brand // by creation
	total   int     // with archived brands
	last    int32   // the highest number of a brand

	pendingSince *time.Time // the time of the transaction, if a change begins a new wait for a recount
}

// lock makes changes of an account's brands wait for each other, and returns its state. The row is locked before the
// other statements take their snapshots.
func lock(ctx context.Context, tx pgx.Tx, account store.ID) (*state, error) {
	var b pgx.Batch
	b.Queue(insertRevision, account)
	b.Queue(lockRevision, account)
	s := &state{account: account}
	// pendingSince is set only if the account was not waiting for a recount already, so that it is the time of the
	// oldest change.
	b.Queue(readRecounted, account).QueryRow(func(row pgx.Row) error {
		var now time.Time
		var recounted bool
		err := row.Scan(&now, &recounted)
		if recounted {
			s.pendingSince = &now
		}
		return err
	})
	s.queue(&b)
	return s, tx.SendBatch(ctx, &b).Close()
}

// queue adds the statements that read the state to a batch.
func (s *state) queue(b *pgx.Batch) {
	b.Queue(selectActiveBrands, s.account).Query(func(rows pgx.Rows) (err error) {
		s.active, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Brand])
		return err
	})
	b.Queue(countBrands, s.account).QueryRow(func(row pgx.Row) error { return row.Scan(&s.total, &s.last) })
}

// draft returns a new brand, if it may be added.
func (s *state) draft(b Brand, c Change) (Brand, error) {
	b.Status, b.Aliases, b.Domains, b.Exclude = Active, []string{}, []string{}, []string{}
	b, faults := c.apply(b)
	if len(faults) > 0 {
		return b, &InvalidError{faults}
	}
	if err := s.check(&b); err != nil {
		return b, err
	}
	if s.total >= MaxBrands {
		return b, ErrTooMany
	}
	return b, nil
}

// check reports whether a brand may be added or changed as far as that depends on the other active brands.
func (s *state) check(b *Brand) error {
	// An archived brand reserves no name and does not count among the active ones.
	if b.Status != Active {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(s.active), func(a Brand) bool { return a.ID == b.ID })
	if conflicts := newTaken(others).conflicts(b); len(conflicts) > 0 {
		return &ConflictError{conflicts}
	}
	// others does not have the brand itself, so a change of an active brand never fails here.
	if len(others) >= MaxActive {
		return ErrTooManyActive
	}
	return nil
}

// insert inserts a brand with the next number of its account.
func (s *state) insert(ctx context.Context, tx pgx.Tx, b *Brand) (*Brand, error) {
	s.last++
	return store.ReadOne[Brand](ctx, tx, ErrNotFound, insertBrand, s.account, b.ID, s.last, b.Kind, b.Name, b.Aliases, b.Domains, b.Exclude,
		b.MatchCase, b.Status)
}

// update writes the members of a brand that customers set.
func (s *state) update(ctx context.Context, tx pgx.Tx, b *Brand) (*Brand, error) {
	return store.ReadOne[Brand](ctx, tx, ErrNotFound, updateBrand, s.account, b.ID, b.Kind, b.Name, b.Aliases, b.Domains, b.Exclude,
		b.MatchCase, b.Status)
}

// raise increases the account's revision, which is locked.
func (s *state) raise(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, raiseRevision, s.account, s.pendingSince)
	return err
}

const (
	// insertRevision adds the row that lockRevision locks, unless the account has one.
	insertRevision = `
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) VALUES ($1, 0, now(), now()) ON CONFLICT DO NOTHING`

	lockRevision = `SELECT FROM brand_revisions WHERE account_id = $1 FOR NO KEY UPDATE`

	selectActiveBrands = `SELECT ` + columns + ` FROM brands WHERE account_id = $1 AND status = 'active' ORDER BY created_at, id`

	// countBrands also returns the highest number. Brands are deleted only with their account, so no number is used
	// again.
	countBrands = `SELECT count(*), COALESCE(max(number), 0) FROM brands WHERE account_id = $1`

	insertBrand = `
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
RETURNING ` + columns

	updateBrand = `
UPDATE brands SET kind = $3, name = $4, aliases = $5, domains = $6, exclude = $7, match_case = $8, status = $9, updated_at = now()
WHERE account_id = $1 AND id = $2
RETURNING ` + columns

	// readRecounted reports whether all answers are counted at the present revision. raiseRevision cannot do that,
	// because Citus rejects an UPDATE with now() in a CASE.
	readRecounted = `
SELECT now(), r.revision = 0 OR EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = $1 AND c.revision >= r.revision)
FROM brand_revisions r WHERE r.account_id = $1`

	raiseRevision = `
UPDATE brand_revisions SET revision = revision + 1, changed_at = now(), pending_since = COALESCE($2, pending_since) WHERE account_id = $1`
)

// Draft returns the active brands of an account as they would be with a draft, by creation, and the draft's index. The
// draft replaces a brand or, if replaces is nil, is a new one with the id newID; it is active in any case. Draft
// returns the errors of Create or Update, and changes nothing.
func Draft(ctx context.Context, tx pgx.Tx, account store.ID, replaces *store.ID, newID store.ID, c Change) (active []Brand, draft int, err error) {
	s := &state{account: account}
	var b pgx.Batch
	s.queue(&b)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, 0, err
	}
	// A draft of an archived brand is matched as if it were active.
	c.Status = nil
	made := Brand{ID: newID}
	if replaces != nil {
		before, err := Get(ctx, tx, account, *replaces)
		if err != nil {
			return nil, 0, err
		}
		// Only these members of the brand stay: a draft replaces all others.
		made.ID, made.Number = before.ID, before.Number
		s.total-- // it takes the place of a brand
	}
	if made, err = s.draft(made, c); err != nil {
		return nil, 0, err
	}
	active = slices.DeleteFunc(s.active, func(other Brand) bool { return other.ID == made.ID })
	return append(active, made), len(active), nil
}
