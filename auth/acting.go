package auth

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Acting is the credential for which a process acts without a request: the newest valid one among a credential and its
// successors by rotation. If none is valid, Credential is nil, and State is the state of the newest.
type Acting struct {
	Credential *Credential // without RateLimit
	ID         store.ID    // of the newest
	State      string      // revoked, disabled or expired, the first that applies
}

// A descendant is a row of readActing.
type descendant struct {
	ID           store.ID
	Name         string
	KeyPrefix    string
	Scopes       []string
	State        string
	CreatedAt    time.Time
	Plan         string
	Features     []string
	JobsPerMonth *int64
	MaxJobs      *int64 // Credential.MaxUnfinishedJobs
}

// ReadActing returns the Acting of a credential of an account. A credential that does not exist counts as revoked.
func ReadActing(ctx context.Context, db store.Querier, account, credential store.ID) (Acting, error) {
	found, err := store.Collect(ctx, db, pgx.RowToStructByPos[descendant], readActing, account, credential)
	if err != nil {
		return Acting{}, err
	}
	if len(found) == 0 {
		return Acting{ID: credential, State: "revoked"}, nil
	}
	// The newest comes first. A credential may have several successors: it can be rotated again after its successor was
	// revoked.
	slices.SortFunc(found, func(a, b descendant) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), b.ID.Compare(a.ID)) })
	acting := Acting{ID: found[0].ID, State: found[0].State}
	for i := range found {
		// The newest valid credential acts.
		if d := &found[i]; d.State == "active" {
			acting.Credential = &Credential{
				ID: d.ID, AccountID: account, Name: d.Name, KeyPrefix: d.KeyPrefix, Scopes: d.Scopes,
				Plan: Plan{Code: d.Plan, Features: d.Features}, JobsPerMonth: d.JobsPerMonth, MaxUnfinishedJobs: d.MaxJobs,
			}
			break
		}
	}
	return acting, nil
}

// readActing reads no key_hash, which aiv dispatch may not read. UNION removes duplicates, so that it would end even
// if credentials formed a circle.
const readActing = `
WITH RECURSIVE chain (id) AS (
  SELECT id FROM credentials WHERE account_id = $1 AND id = $2
  UNION
  SELECT c.id FROM chain JOIN credentials c ON c.rotated_from = chain.id
)
SELECT c.id, c.name, c.key_prefix, c.scopes,
  CASE WHEN c.revoked_at IS NOT NULL THEN 'revoked' WHEN c.expires_at <= clock_timestamp() THEN 'expired'
    WHEN c.disabled_at IS NOT NULL THEN 'disabled' ELSE 'active' END,
  c.created_at, p.code, p.features, CASE WHEN a.own_quota THEN a.jobs_per_month ELSE p.jobs_per_month END, p.max_unfinished_jobs
FROM chain JOIN credentials c ON c.id = chain.id JOIN accounts a ON a.id = c.account_id JOIN plans p ON p.code = a.plan_code`

// An Expiring is a valid credential that expires soon and has no successor.
type Expiring struct {
	ID        store.ID
	AccountID store.ID
	Name      string
	KeyPrefix string
	ExpiresAt time.Time
}

// ReadExpiring returns up to most credentials that expire within the given time, soonest first.
func ReadExpiring(ctx context.Context, pool *pgxpool.Pool, within time.Duration, most int) ([]Expiring, error) {
	return store.Collect(ctx, pool, pgx.RowToStructByPos[Expiring], expiring, within, most)
}
