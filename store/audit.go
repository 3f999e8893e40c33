package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Change is an operator's change as audit_log keeps it: who did what to which record. Detail never holds a secret.
type Change struct {
	Actor   string
	Action  string // such as "keys.revoke"
	Subject string // the record's id or code
	Detail  map[string]any
}

// Audit writes the change in the transaction that makes it.
func Audit(ctx context.Context, tx pgx.Tx, c Change) error {
	if c.Detail == nil {
		c.Detail = map[string]any{}
	}
	detail, err := json.Marshal(c.Detail)
	if err != nil {
		return fmt.Errorf("audit of %s: %w", c.Action, err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO audit_log (actor, action, subject, detail) VALUES ($1, $2, $3, $4)`,
		c.Actor, c.Action, c.Subject, detail)
	return err
}
