package auth

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// BeginErasing marks an account as erased and revokes all its keys, so that no request can add to its data. It returns
// how long ago, by the database's clock, the latest of them was revoked, or a day if there are none.
func (a *Admin) BeginErasing(ctx context.Context, id store.ID) (revoked time.Duration, err error) {
	err = a.changeIdentity(ctx, "accounts.erase", id.Text("acct"), nil, func(tx pgx.Tx) error {
		for _, sql := range []string{lockErased, revokeAccount, beginErasing} {
			if _, err := tx.Exec(ctx, sql, id); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, sinceRevocation, id).Scan(&revoked)
	})
	return max(0, revoked), err // the database's clock may have been ahead then
}

// EndErasing deletes the credentials of an account and replaces its name. No row must refer to the credentials. The
// account itself stays, with its usage totals.
func (a *Admin) EndErasing(ctx context.Context, id store.ID) error {
	return store.Step(ctx, a.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, deleteCredentials, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, renameAccount, id); err != nil {
			return err
		}
		if err := revise(ctx, tx); err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: "accounts.erase.end", Subject: id.Text("acct")})
	})
}
