package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Admin changes the settings of providers. Every change is written to audit_log in its transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // in the audit log
}

// A Limit is a change of one limit of a provider.
type Limit struct {
	Set   bool // false: leave the limit unchanged
	Value *int // nil: no limit
}

// Limits are changes of a provider's limits.
type Limits struct {
	PerMinute Limit // claims in one UTC minute
	InFlight  Limit // leases held at once
}

// SetLimits changes the limits of a provider, from the next claim on.
func (a *Admin) SetLimits(ctx context.Context, provider string, l Limits) error {
	detail := map[string]any{}
	for name, limit := range map[string]Limit{"per_minute": l.PerMinute, "in_flight": l.InFlight} {
		if limit.Value != nil && (*limit.Value < 0 || *limit.Value > maxLimit) {
			return fmt.Errorf("a limit of %d: want 0 to %d, or none", *limit.Value, maxLimit)
		}
		if limit.Set {
			detail[name] = limit.Value
		}
	}
	if len(detail) == 0 {
		return errors.New("no limit was given")
	}
	return a.change(ctx, "providers.set", provider, detail, setLimits, l.PerMinute.Set, l.PerMinute.Value, l.InFlight.Set, l.InFlight.Value)
}

const maxLimit = 1_000_000

// Pause stops the claims of a provider, from the next one on. The note gives the reason.
func (a *Admin) Pause(ctx context.Context, provider, note string) error {
	return a.setPause(ctx, "providers.pause", provider, note, &note)
}

// Resume ends a pause.
func (a *Admin) Resume(ctx context.Context, provider, note string) error {
	return a.setPause(ctx, "providers.resume", provider, note, nil)
}

func (a *Admin) setPause(ctx context.Context, action, provider, note string, paused *string) error {
	if strings.TrimSpace(note) == "" {
		return errors.New("a note is required: it gives the reason")
	}
	return a.change(ctx, action, provider, map[string]any{"note": note}, setPause, paused)
}

func (a *Admin) change(ctx context.Context, action, provider string, detail map[string]any, sql string, args ...any) error {
	return pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, append([]any{provider}, args...)...)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23503" {
			return fmt.Errorf("there is no provider %q; see aiv providers list", provider)
		}
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: provider, Detail: detail})
	})
}

const (
	setLimits = `
INSERT INTO provider_settings AS s (provider_code, per_minute, in_flight) VALUES ($1, $3, $5)
ON CONFLICT (provider_code) DO UPDATE SET per_minute = CASE WHEN $2 THEN excluded.per_minute ELSE s.per_minute END,
  in_flight = CASE WHEN $4 THEN excluded.in_flight ELSE s.in_flight END`

	setPause = `
INSERT INTO provider_settings (provider_code, paused_at, pause_note) VALUES ($1, CASE WHEN $2::text IS NOT NULL THEN now() END, $2)
ON CONFLICT (provider_code) DO UPDATE SET paused_at = excluded.paused_at, pause_note = excluded.pause_note`
)
