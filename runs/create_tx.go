package runs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateTx is Create in the caller's transaction, for runs that are created together with changes of other rows. The
// caller must call Check before the transaction, because the checks read the catalog on other connections. The
// transaction must be READ COMMITTED. It locks the account's row of account_months, so it should be short.
//
// The transaction can go on after a *QuotaError and ErrKeyReused. After any other error it must be rolled back. Stats
// does not count runs that are created by CreateTx, because their transactions may be rolled back.
func (r *Runs) CreateTx(ctx context.Context, tx pgx.Tx, q *CreateRequest, methodology string) (*CreateResult, error) {
	p := r.newPending(q, methodology)
	jobs := int64(p.run.TotalJobs)
	unfinished := r.unfinished.add(p.run.AccountID, jobs)
	defer r.unfinished.add(p.run.AccountID, -jobs)
	write := r.insertTx
	if q.Proposal.Orderer.isMetered(unfinished) {
		write = func(ctx context.Context, tx pgx.Tx, batch []*pending) ([]writeResult, error) {
			return r.writeFitting(ctx, tx, batch, lockWait{})
		}
	}
	for range maxClaims {
		results, err := write(ctx, tx, []*pending{p})
		switch {
		case waitedForKey(err):
			return nil, ErrKeyInUse
		case err != nil:
			return nil, err
		case results[0].quota != nil:
			return nil, results[0].quota
		case results[0].written:
			return &CreateResult{RunID: p.run.ID, Response: p.response}, nil
		}
		if result, err := q.replay(ctx, tx); result != nil || err != nil {
			return result, err
		}
		// The record of the key was purged between the claim and the lookup.
	}
	return nil, fmt.Errorf("the key was taken %d times and never found", maxClaims)
}
