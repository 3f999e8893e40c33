package brands

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
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
	c.Status = nil
	made := Brand{ID: newID}
	if replaces != nil {
		before, err := Get(ctx, tx, account, *replaces)
		if err != nil {
			return nil, 0, err
		}
		made.ID, made.Number = before.ID, before.Number
		s.total-- // it takes the place of a brand
	}
	if made, err = s.draft(made, c); err != nil {
		return nil, 0, err
	}
	active = slices.DeleteFunc(s.active, func(other Brand) bool { return other.ID == made.ID })
	return append(active, made), len(active), nil
}
