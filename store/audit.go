package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Change is one change that an operator made, as recorded in audit_log. Detail never contains a secret.
type Change struct {
	At      time.Time // set by the database
	Actor   string
	Action  string // for example "keys.revoke"
	Subject string // the record's id or code
	Detail  map[string]any
}

// Audit records a change in the transaction that makes it.
func Audit(ctx context.Context, tx Tx, c Change) error {
	if c.Detail == nil {
		c.Detail = map[string]any{}
	}
	detail, err := json.Marshal(c.Detail)
	if err != nil {
		return fmt.Errorf("record %s in the audit log: %w", c.Action, err)
	}
	_, err = tx.Exec(ctx, insertAudit, c.Actor, c.Action, c.Subject, detail)
	return err
}

// AuditFilter selects changes. An empty Subject or Actor selects all.
type AuditFilter struct {
	Subject string
	Actor   string
	Limit   int // of the newest changes
}

// AuditLog returns changes, newest first.
func AuditLog(ctx context.Context, pool *pgxpool.Pool, f AuditFilter) ([]Change, error) {
	changes, err := Collect(ctx, pool, pgx.RowToStructByPos[Change], selectAudit, f.Subject, f.Actor, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return changes, nil
}

const insertAudit = `INSERT INTO audit_log (actor, action, subject, detail) VALUES ($1, $2, $3, $4)`

const selectAudit = `
SELECT at, actor, action, subject, detail
FROM audit_log
WHERE ($1 = '' OR subject = $1) AND ($2 = '' OR actor = $2)
ORDER BY id DESC
LIMIT $3`
