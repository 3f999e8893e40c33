package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Issued is a credential as an operator sees it. Key is the raw key; only CreateKey and RotateKey set it.
type Issued struct {
	ID           store.ID
	AccountID    store.ID
	Name         string
	KeyPrefix    string
	Scopes       []string
	RateLimit    int
	OwnRateLimit bool // false: the plan's, or the default
	RotatedFrom  *store.ID
	ExpiresAt    *time.Time
	DisabledAt   *time.Time
	RevokedAt    *time.Time
	CreatedAt    time.Time
	State        string // active, disabled, expired or revoked

	Key string `db:"-"`
}

// Terms are the settings of a credential. A nil field is not changed or, in a new credential, not set.
type Terms struct {
	Name      *string
	Scopes    []string
	RateLimit *int
	ExpiresAt *time.Time // the zero time: never
}

// CreateKey issues a credential to an account and returns it with its raw key, which is stored nowhere.
func (a *Admin) CreateKey(ctx context.Context, account store.ID, t Terms) (Issued, error) {
	if t.Name == nil {
		return Issued{}, errors.New("the credential has no name")
	}
	if err := t.Check(); err != nil {
		return Issued{}, err
	}
	detail := t.detail()
	detail["account"] = account.Text("acct")
	// The rate limit is stored only if it is given: otherwise the plan's applies, also after it changes.
	return a.issue(ctx, "keys.create", detail, func(tx pgx.Tx, id store.ID, prefix string, hash Hash) error {
		if err := mayHaveKeys(ctx, tx, account); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createCredential, id, account, *t.Name, prefix, hash[:], unique(t.Scopes), t.RateLimit, t.expiry(), nil)
		return err
	})
}

// RotateKey issues a successor with the same terms, or with another expiry: nil is the old one, the zero time never.
// The old key remains valid for the grace period.
func (a *Admin) RotateKey(ctx context.Context, id store.ID, grace time.Duration, expires *time.Time) (Issued, error) {
	if grace < 0 {
		return Issued{}, errors.New("the grace period is negative")
	}
	t := Terms{ExpiresAt: expires}
	if err := t.Check(); err != nil {
		return Issued{}, err
	}
	detail := t.detail()
	detail["rotated_from"], detail["grace"] = id.Text("cred"), grace.String()
	return a.issue(ctx, "keys.rotate", detail, func(tx pgx.Tx, next store.ID, prefix string, hash Hash) error {
		old, err := one(ctx, tx, oneCredential, id)
		if err != nil {
			return err
		}
		// The account is locked before the credential, as an erasure does; so the credential is read again under its
		// lock.
		if err := mayHaveKeys(ctx, tx, old.AccountID); err != nil {
			return err
		}
		if old, err = one(ctx, tx, lockedCredential, id); err != nil {
			return err
		}
		if old.State != "active" {
			return fmt.Errorf("%s is %s; only active credentials can be rotated", id.Text("cred"), old.State)
		}
		if err := mayRotate(ctx, tx, id, expires); err != nil {
			return err
		}
		// A rate limit that comes from the plan stays the plan's.
		var own *int
		if old.OwnRateLimit {
			own = &old.RateLimit
		}
		expiry := old.ExpiresAt
		if expires != nil {
			expiry = t.expiry()
		}
		if _, err := tx.Exec(ctx, createCredential, next, old.AccountID, old.Name, prefix, hash[:], old.Scopes, own, expiry, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, expireCredential, id, grace)
		return err
	})
}

// mayHaveKeys rejects an account that does not exist or is erased. It locks the account, so that an erasure waits for
// this transaction and revokes the new key. An erasure also locks the account before its credentials.
func mayHaveKeys(ctx context.Context, tx pgx.Tx, id store.ID) error {
	account, err := readAccount(ctx, tx, lockAccount, id)
	if err == nil && account.ErasedAt != nil {
		err = fmt.Errorf("account %s is erased", id.Text("acct"))
	}
	return err
}

// mayRotate rejects a credential that has a successor. If the successor is revoked, the new key needs an expiry,
// because the expiry of the credential is the end of its grace period.
func mayRotate(ctx context.Context, tx pgx.Tx, id store.ID, expires *time.Time) error {
	var successor store.ID
	var revoked bool
	err := tx.QueryRow(ctx, successorOf, id).Scan(&successor, &revoked)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && revoked && expires != nil:
		return nil
	case err != nil:
		return err
	case revoked:
		return fmt.Errorf("%s was rotated before and expires with its grace period; set the expiry of the new key with -expires TIME or never", id.Text("cred"))
	}
	return fmt.Errorf("%s has been rotated already; rotate its successor %s", id.Text("cred"), successor.Text("cred"))
}

// issue makes a key and an id, and returns the credential that write has written with them. Only the prefix and the
// hash of the key are written.
func (a *Admin) issue(ctx context.Context, action string, detail map[string]any, write func(tx pgx.Tx, id store.ID, prefix string, hash Hash) error) (c Issued, err error) {
	key, prefix, hash := newSecret(keyStart)
	id := store.NewID()
	detail["key_prefix"] = prefix
	err = a.changeIdentity(ctx, action, id.Text("cred"), detail, func(tx pgx.Tx) error {
		if err := write(tx, id, prefix, hash); err != nil {
			return err
		}
		c, err = one(ctx, tx, oneCredential, id)
		return err
	})
	if err != nil {
		return Issued{}, err
	}
	c.Key = key
	return c, nil
}

// SetKey changes the terms of a credential, from the next request on.
func (a *Admin) SetKey(ctx context.Context, id store.ID, t Terms) (Issued, error) {
	if err := t.Check(); err != nil {
		return Issued{}, err
	}
	return a.alter(ctx, "keys.set", id, t.detail(), func(tx pgx.Tx, _ Issued) error {
		var scopes []string
		if t.Scopes != nil {
			scopes = unique(t.Scopes)
		}
		_, err := tx.Exec(ctx, updateCredential, id, t.Name, scopes, t.RateLimit, t.ExpiresAt != nil, t.expiry())
		return err
	})
}

// RevokeKey ends a credential permanently.
func (a *Admin) RevokeKey(ctx context.Context, id store.ID) (Issued, error) {
	return a.alterBy(ctx, "keys.revoke", id, revokeCredential)
}

// DisableKey suspends a credential until EnableKey.
func (a *Admin) DisableKey(ctx context.Context, id store.ID) (Issued, error) {
	return a.alterBy(ctx, "keys.disable", id, disableCredential)
}

// EnableKey ends a suspension. It refuses a revoked credential; an expired one stays invalid.
func (a *Admin) EnableKey(ctx context.Context, id store.ID) (Issued, error) {
	return a.alter(ctx, "keys.enable", id, nil, func(tx pgx.Tx, old Issued) error {
		if old.RevokedAt != nil {
			return fmt.Errorf("%s is revoked, which is permanent; create another with aiv keys create", id.Text("cred"))
		}
		_, err := tx.Exec(ctx, enableCredential, id)
		return err
	})
}

// alterBy alters a credential by a statement that takes its id.
func (a *Admin) alterBy(ctx context.Context, action string, id store.ID, sql string) (Issued, error) {
	return a.alter(ctx, action, id, nil, func(tx pgx.Tx, _ Issued) error {
		_, err := tx.Exec(ctx, sql, id)
		return err
	})
}

// alter runs f on a locked credential, and returns the credential after that.
func (a *Admin) alter(ctx context.Context, action string, id store.ID, detail map[string]any, f func(tx pgx.Tx, old Issued) error) (c Issued, err error) {
	err = a.changeIdentity(ctx, action, id.Text("cred"), detail, func(tx pgx.Tx) error {
		old, err := one(ctx, tx, lockedCredential, id)
		if err != nil {
			return err
		}
		if err := f(tx, old); err != nil {
			return err
		}
		c, err = one(ctx, tx, oneCredential, id)
		return err
	})
	return c, err
}

// Keys lists the credentials of an account, or of all accounts if it is nil, oldest first.
func (a *Admin) Keys(ctx context.Context, account *store.ID) ([]Issued, error) {
	return store.Collect(ctx, a.Pool, pgx.RowToStructByPos[Issued], listCredentials, account)
}

// one reads a credential by a statement whose parameter is its id.
func one(ctx context.Context, tx pgx.Tx, sql string, id store.ID) (Issued, error) {
	c, err := store.CollectOne(ctx, tx, pgx.RowToStructByPos[Issued], sql, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, fmt.Errorf("there is no credential %s; see aiv keys list", id.Text("cred"))
	}
	return c, err
}

// Check returns an error if no credential can have these terms.
func (t *Terms) Check() error {
	if t.Name != nil && strings.TrimSpace(*t.Name) == "" {
		return errors.New("the credential name is empty")
	}
	for _, s := range t.Scopes {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("unknown scope %q; the scopes are %s", s, strings.Join(Scopes, ", "))
		}
	}
	if t.ExpiresAt != nil && !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(time.Now()) {
		return fmt.Errorf("the expiry %s is in the past; use aiv keys revoke to end a key now", t.ExpiresAt.Format(time.RFC3339))
	}
	return checkRateLimit(t.RateLimit)
}

// expiry returns the time to store; nil: the credential never expires, which is also the default.
func (t *Terms) expiry() *time.Time {
	if t.ExpiresAt == nil || t.ExpiresAt.IsZero() {
		return nil
	}
	return t.ExpiresAt
}

// detail returns the terms for audit_log.
func (t *Terms) detail() map[string]any {
	detail := map[string]any{}
	if t.Name != nil {
		detail["name"] = *t.Name
	}
	if t.Scopes != nil {
		detail["scopes"] = unique(t.Scopes)
	}
	if t.RateLimit != nil {
		detail["rate_limit_per_minute"] = *t.RateLimit
	}
	if t.ExpiresAt != nil {
		detail["expires_at"] = store.FormatTimeOrNil(t.expiry())
	}
	return detail
}
