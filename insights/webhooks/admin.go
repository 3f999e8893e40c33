package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Admin changes endpoints for operators. Each change adds a row to audit_log in the same transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // the operator
}

// An AdminEndpoint is an endpoint as operators see it.
type AdminEndpoint struct {
	AccountID store.ID
	Endpoint
	FailingSince *time.Time // the first failed attempt after the latest success
}

// List returns the endpoints of an account, or of all accounts.
func (a *Admin) List(ctx context.Context, account *store.ID) (all []AdminEndpoint, err error) {
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listAllEndpoints, account)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[AdminEndpoint])
		return err
	})
	return all, err
}

// Disable disables an endpoint so that only an operator can enable it again, even if it is already disabled for another
// reason. It returns ErrEndpointNotFound.
func (a *Admin) Disable(ctx context.Context, id store.ID) (*AdminEndpoint, error) {
	return a.set(ctx, id, new(ByOperator), "webhooks.disable")
}

// Enable enables an endpoint that is disabled for any reason. It returns ErrEndpointNotFound.
func (a *Admin) Enable(ctx context.Context, id store.ID) (*AdminEndpoint, error) {
	return a.set(ctx, id, nil, "webhooks.enable")
}

// set sets the reason why an endpoint is disabled; nil enables it. The account of the endpoint is found first,
// because the other statements need it.
func (a *Admin) set(ctx context.Context, id store.ID, reason *string, action string) (changed *AdminEndpoint, err error) {
	var account store.ID
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, accountOfEndpoint, id).Scan(&account)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrEndpointNotFound
	}
	if err != nil {
		return nil, err
	}
	err = store.Step(ctx, a.Pool, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if changed, err = store.ReadOne[AdminEndpoint](ctx, tx, nil, setDisabledReason, account, id, reason); err != nil {
			return err
		}
		// Deliveries may have become due while the endpoint was disabled.
		if reason == nil {
			if _, err := tx.Exec(ctx, wakeQueue, account); err != nil {
				return err
			}
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: id.Text("wh"),
			Detail: map[string]any{"account_id": account.Text("acct"), "url": before.URL, "previous_reason": before.DisabledReason}})
	})
	return changed, err
}
