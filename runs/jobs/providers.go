package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
		if limit.Value != nil && (*limit.Value < 0 || *limit.Value > MaxLimit) {
			return fmt.Errorf("a limit of %d: want 0 to %d, or none", *limit.Value, MaxLimit)
		}
		if limit.Set {
			detail[name] = limit.Value
		}
	}
	if len(detail) == 0 {
		return errors.New("no limit was given")
	}
	var b pgx.Batch
	b.Queue(setLimits, provider, l.PerMinute.Set, l.PerMinute.Value, l.InFlight.Set, l.InFlight.Value)
	return a.change(ctx, "providers.set", provider, detail, &b)
}

// MaxLimit bounds the limits of a provider.
const MaxLimit = 1_000_000

// Pause stops the claims of a provider, from the next one on. The note gives the reason.
func (a *Admin) Pause(ctx context.Context, provider, note string) error {
	var b pgx.Batch
	b.Queue(setPause, provider, note)
	return a.changeWithNote(ctx, "providers.pause", provider, note, &b)
}

// Resume ends a pause, and the time for which a throttled worker paused the provider.
func (a *Admin) Resume(ctx context.Context, provider, note string) error {
	var b pgx.Batch
	b.Queue(setPause, provider, nil)
	b.Queue(endThrottle, provider)
	return a.changeWithNote(ctx, "providers.resume", provider, note, &b)
}

func (a *Admin) changeWithNote(ctx context.Context, action, provider, note string, statements *pgx.Batch) error {
	if strings.TrimSpace(note) == "" {
		return errors.New("a note is required: it gives the reason")
	}
	return a.change(ctx, action, provider, map[string]any{"note": note}, statements)
}

func (a *Admin) change(ctx context.Context, action, provider string, detail map[string]any, statements *pgx.Batch) error {
	return pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		err := tx.SendBatch(ctx, statements).Close()
		if store.IsForeignKeyViolation(err) {
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

	endThrottle = `DELETE FROM provider_throttles WHERE provider_code = $1`

	setPause = `
INSERT INTO provider_settings (provider_code, paused_at, pause_note) VALUES ($1, CASE WHEN $2::text IS NOT NULL THEN now() END, $2)
ON CONFLICT (provider_code) DO UPDATE SET paused_at = excluded.paused_at, pause_note = excluded.pause_note`
)

// A ProviderState contains how many jobs of a provider wait and are leased, and why none can be claimed.
type ProviderState struct {
	Code              string
	Unmet             []string // dependencies
	PerMinute         *int
	InFlight          *int
	PausedAt          *time.Time // by an operator
	PauseNote         *string
	ThrottledUntil    *time.Time // by workers; nil if that has passed
	ClaimedThisMinute int
	Leased            int64      // jobs with a held lease
	Waiting           int64      // jobs that can be claimed now or later
	OldestRun         *time.Time // creation of the oldest run with jobs that wait
}

// Blocked returns why no job of the provider can be claimed now, or "" if one can.
func (p *ProviderState) Blocked() string {
	switch {
	case len(p.Unmet) > 0:
		return "the provider lacks " + strings.Join(p.Unmet, ", ")
	case p.PausedAt != nil:
		return "the provider is paused: " + *p.PauseNote
	case p.ThrottledUntil != nil:
		return "the provider is throttled until " + store.FormatTime(*p.ThrottledUntil)
	case p.InFlight != nil && p.Leased >= int64(*p.InFlight):
		return fmt.Sprintf("the limit of %d in flight is reached", *p.InFlight)
	case p.PerMinute != nil && p.ClaimedThisMinute >= *p.PerMinute:
		return fmt.Sprintf("the limit of %d per minute is reached", *p.PerMinute)
	}
	return ""
}

// ProviderStates returns the state of each provider, by code. It reads all waiting jobs.
func ProviderStates(ctx context.Context, pool *pgxpool.Pool) (states []ProviderState, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, providerStates)
		if err != nil {
			return err
		}
		states, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ProviderState])
		return err
	})
	return states, err
}

// providerStates counts the jobs of runs that no dispatcher has queued yet as well. Leases of canceled runs do not count.
const providerStates = `
WITH arrived AS (
  SELECT m.provider_code, r.created_at, count(*) * (r.total_jobs / cardinality(r.model_ids)) AS jobs
  FROM job_arrivals a JOIN measurement_runs r ON r.account_id = a.account_id AND r.id = a.run_id
  CROSS JOIN LATERAL unnest(r.model_ids) AS i (id) JOIN models m ON m.id = i.id
  WHERE NOT a.canceled AND r.status IN ('queued', 'running')
  GROUP BY m.provider_code, r.account_id, r.id
), waiting AS (
  SELECT provider_code, created_at, jobs FROM arrived
  UNION ALL
  SELECT q.provider_code, q.run_created_at, q.last_ordinal - q.next_ordinal + 1
  FROM job_queue q JOIN measurement_runs r ON r.account_id = q.account_id AND r.id = q.run_id WHERE r.status <> 'canceled'
  UNION ALL
  SELECT l.provider_code, l.run_created_at, l.last_ordinal - l.ordinal + 1
  FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id WHERE r.status <> 'canceled' AND l.state <> 'held'
), leased AS (
  SELECT l.provider_code, sum(l.last_ordinal - l.ordinal + 1) AS jobs
  FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id WHERE r.status <> 'canceled' AND l.state = 'held'
  GROUP BY l.provider_code
)
SELECT p.code,
  ARRAY(
    SELECT d.name FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) WITH ORDINALITY AS d (name, no)
    WHERE NOT EXISTS (SELECT FROM provider_dependencies m WHERE m.provider_code = p.code AND m.dependency = d.name AND m.met) ORDER BY d.no),
  s.per_minute, s.in_flight, s.paused_at, s.pause_note,
  (SELECT until FROM provider_throttles t WHERE t.provider_code = p.code AND until > now()),
  COALESCE((SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND minute = date_trunc('minute', now(), 'UTC')), 0),
  COALESCE((SELECT jobs FROM leased WHERE leased.provider_code = p.code), 0),
  COALESCE((SELECT sum(jobs) FROM waiting WHERE waiting.provider_code = p.code), 0),
  (SELECT min(created_at) FROM waiting WHERE waiting.provider_code = p.code)
FROM providers p LEFT JOIN provider_settings s ON s.provider_code = p.code ORDER BY p.code`
