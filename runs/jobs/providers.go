package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// ProviderAdmin changes the settings of providers. Each change adds a row to audit_log in the same transaction.
type ProviderAdmin struct {
	Pool  *pgxpool.Pool
	Actor string // in the audit log
}

// A ProviderLimit is a change of one limit of a provider.
type ProviderLimit struct {
	Set   bool // false: leave the limit unchanged
	Value *int // nil: no limit
}

// ProviderLimits are changes of a provider's limits.
type ProviderLimits struct {
	PerMinute ProviderLimit // claims in one UTC minute
	InFlight  ProviderLimit // leases held at once
}

// SetLimits changes the limits of a provider, from the next claim on.
func (a *ProviderAdmin) SetLimits(ctx context.Context, provider string, l ProviderLimits) error {
	// The audit log shows the limits that are set.
	detail := map[string]any{}
	for name, limit := range map[string]ProviderLimit{"per_minute": l.PerMinute, "in_flight": l.InFlight} {
		if limit.Value != nil && (*limit.Value < 0 || *limit.Value > MaxProviderLimit) {
			return fmt.Errorf("invalid limit %d: use 0 to %d, or none", *limit.Value, MaxProviderLimit)
		}
		if limit.Set {
			detail[name] = limit.Value
		}
	}
	if len(detail) == 0 {
		return errors.New("no limit was given")
	}
	return a.change(ctx, "providers.set", provider, detail, func(b *pgx.Batch) {
		b.Queue(setLimits, provider, l.PerMinute.Set, l.PerMinute.Value, l.InFlight.Set, l.InFlight.Value)
	})
}

// MaxProviderLimit bounds the limits of a provider.
const MaxProviderLimit = 1_000_000

// Pause stops the claims of a provider, from the next one on. The note gives the reason, and replaces the note of an
// earlier pause.
func (a *ProviderAdmin) Pause(ctx context.Context, provider, note string) error {
	return a.changeWithNote(ctx, "providers.pause", provider, note, func(b *pgx.Batch) {
		b.Queue(setPause, provider, note, a.Actor)
	})
}

// Resume ends the pause of a provider, whether an operator or a worker caused it, and the throttle that workers
// reported.
func (a *ProviderAdmin) Resume(ctx context.Context, provider, note string) error {
	return a.changeWithNote(ctx, "providers.resume", provider, note, func(b *pgx.Batch) {
		b.Queue(endPause, provider)
		b.Queue(endThrottle, provider)
	})
}

// changeWithNote is change with a note, which must not be blank.
func (a *ProviderAdmin) changeWithNote(ctx context.Context, action, provider, note string, queue func(*pgx.Batch)) error {
	if strings.TrimSpace(note) == "" {
		return errors.New("a note is required: it gives the reason")
	}
	return a.change(ctx, action, provider, map[string]any{"note": note}, queue)
}

// change runs the statements that queue adds and writes their audit record in one transaction, which may be repeated. It
// fails if there is no such provider.
func (a *ProviderAdmin) change(ctx context.Context, action, provider string, detail map[string]any, queue func(*pgx.Batch)) error {
	return store.Repeat(ctx, a.Pool, func(tx pgx.Tx) error {
		var b pgx.Batch // pgx can send a batch once
		queue(&b)
		var exists bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM providers WHERE code = $1)`, provider).Scan(&exists)
		if err == nil && !exists {
			return fmt.Errorf("there is no provider %q; see aiv providers list", provider)
		}
		if err == nil {
			err = tx.SendBatch(ctx, &b).Close()
		}
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: provider, Detail: detail})
	})
}

// A ProviderState contains how many jobs of a provider wait and are leased, and why none can be claimed.
type ProviderState struct {
	Code              string
	Unmet             []string // dependencies
	PerMinute         *int     // nil: no limit
	InFlight          *int     // nil: no limit
	PausedAt          *time.Time
	PauseNote         *string    // of the operator, or the message of the worker
	PauseReason       *string    // why a worker reported the provider unavailable; nil: an operator paused it
	PausedBy          *string    // the actor in the audit log
	ThrottledUntil    *time.Time // by workers; nil if that has passed
	ClaimedThisMinute int
	Leased            int64      // jobs with a held lease
	Waiting           int64      // jobs that can be claimed now or later
	OldestRun         *time.Time // creation of the oldest run with jobs that wait
	RetryAt           *time.Time // when the first of its jobs is tried again; nil if one can be claimed now
}

// Blocked returns why no job of the provider can be claimed now, or "" if one can.
func (p *ProviderState) Blocked() string {
	switch {
	case len(p.Unmet) > 0:
		return "the provider lacks " + strings.Join(p.Unmet, ", ")
	case p.PausedAt != nil:
		if p.PauseReason == nil {
			return "the provider is paused: " + *p.PauseNote
		}
		return fmt.Sprintf("the provider is paused (%s) until you run aiv providers resume %s -note TEXT: %s",
			*p.PauseReason, p.Code, *p.PauseNote)
	case p.ThrottledUntil != nil:
		return "the provider is throttled until " + store.FormatTime(*p.ThrottledUntil)
	case p.InFlight != nil && p.Leased >= int64(*p.InFlight):
		return fmt.Sprintf("the limit of %d in flight is reached", *p.InFlight)
	case p.PerMinute != nil && p.ClaimedThisMinute >= *p.PerMinute:
		return fmt.Sprintf("the limit of %d per minute is reached", *p.PerMinute)
	}
	return ""
}

// A ProviderBacklog contains how many jobs of a provider wait and are leased. It includes jobs of runs that were
// canceled about a second ago.
type ProviderBacklog struct {
	Code        string
	Paused      bool    // or throttled
	Unavailable *string // the reason, if it is paused because a worker reported it unavailable
	Leased      int64
	Waiting     int64
}

// ReadBacklogs returns the backlog of each provider, by code. It reads all waiting jobs, but not their runs as
// ProviderStates does.
func ReadBacklogs(ctx context.Context, pool *pgxpool.Pool) ([]ProviderBacklog, error) {
	return readProviders[ProviderBacklog](ctx, pool, providerBacklogs)
}

// ProviderStates returns the state of each provider, by code. It reads all waiting jobs.
func ProviderStates(ctx context.Context, pool *pgxpool.Pool) ([]ProviderState, error) {
	return readProviders[ProviderState](ctx, pool, providerStates)
}

// readProviders reads the rows of a statement about all providers, which may take long.
func readProviders[T any](ctx context.Context, pool *pgxpool.Pool, sql string) (providers []T, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) (err error) {
		providers, err = store.Collect(ctx, tx, pgx.RowToStructByPos[T], sql)
		return err
	})
	return providers, err
}

// writePauses pauses the providers that were reported unavailable, and records each pause that took effect in the audit
// log. The first report wins: a provider that is already paused stays as it is.
func (l *ledger) writePauses(ctx context.Context, tx store.Tx) error {
	if len(l.pauses) == 0 {
		return nil
	}
	codes := slices.Sorted(maps.Keys(l.pauses))
	var reasons, messages, workers []string
	for _, code := range codes {
		p := l.pauses[code]
		reasons, messages, workers = append(reasons, p.reason), append(messages, p.message), append(workers, p.worker.Text("wrk"))
	}
	type pausedProvider struct{ Provider, Reason, Message, Worker string }
	// The lock of claims is held (readLedger), so no claim has read these providers as open.
	paused, err := store.Collect(ctx, tx, pgx.RowToStructByPos[pausedProvider], pauseUnavailable, codes, reasons, messages, workers)
	if err != nil {
		return err
	}
	for _, p := range paused {
		change := store.Change{Actor: p.Worker, Action: "providers.unavailable", Subject: p.Provider,
			Detail: map[string]any{"reason": p.Reason, "message": p.Message}}
		if err := store.Audit(ctx, tx, change); err != nil {
			return err
		}
	}
	return nil
}
