package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store"
)

// An issuedKey is what `aiv keys create` and `aiv keys rotate` print: the only output that contains a raw key.
type issuedKey struct {
	credential
	Key string `json:"key"`
}

// keysCreate issues a credential. Parse requires -account, so account is not nil after it; terms without a flag are
// nil, and get the defaults.
func keysCreate(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "the `ID` of its account")
	var terms auth.Terms
	c.termsFlags(&terms, "", "the plan's", "never")
	if _, err := c.Parse("-account", "-name", "-scopes"); err != nil {
		return err
	}
	if err := terms.Check(); err != nil {
		return c.Wrong("%v", err)
	}
	return c.issueKey(ctx, "", func(admin *auth.Admin) (auth.Issued, error) {
		return admin.CreateKey(ctx, *account, terms)
	})
}

// keysRotate issues a successor of a credential. The old key keeps its own expiry if that is before the end of the
// grace period.
func keysRotate(ctx context.Context, c *call) error {
	var grace time.Duration
	c.DurationFlag(&grace, "grace", 24*time.Hour, "the `DURATION` for which the old key stays valid, such as 90m or 0s")
	var expires *time.Time
	c.expiryFlag(&expires, "the expiry `TIME` of the new key (RFC 3339), or never (default: the old key's)")
	id, args, err := c.parseWithID("cred")
	if err != nil {
		return err
	}
	if grace < 0 {
		return c.Wrong("-grace must not be negative")
	}
	// Only the expiry can be wrong: the other terms are taken from the old credential.
	if err := (&auth.Terms{ExpiresAt: expires}).Check(); err != nil {
		return c.Wrong("%v", err)
	}
	old := fmt.Sprintf("The old key, of %s, stays valid for %s, or until its expiry if that is earlier.\n", args[0], cli.FormatDuration(grace))
	if grace == 0 {
		old = fmt.Sprintf("The old key, of %s, is no longer valid.\n", args[0])
	}
	return c.issueKey(ctx, old, func(admin *auth.Admin) (auth.Issued, error) {
		return admin.RotateKey(ctx, id, grace, expires)
	})
}

// issueKey creates a key and prints it. Without a terminal it requires -json, so that a key is not written to a log by
// mistake; it refuses before the key is created.
func (c *call) issueKey(ctx context.Context, more string, issue func(*auth.Admin) (auth.Issued, error)) error {
	if !c.Terminal && !c.AsJSON() {
		return c.Wrong("the key is a secret; to write it to a pipe or a file, add -json")
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		made, err := issue(&auth.Admin{Pool: pool, Actor: c.actor()})
		if err != nil {
			return err
		}
		// From here on the credential exists: an error must say so, also if the reader of a pipe has gone.
		service.SurvivePipe()
		k := issuedKey{credentialOf(made), made.Key}
		err = c.Print(k, func(w io.Writer) {
			fmt.Fprintf(w, "Credential %s, %q, belongs to %s: scopes %s; %d requests per minute; expires: %s.\n",
				k.ID, k.Name, k.AccountID, cli.List(k.Scopes), k.RateLimit, humanTime(made.ExpiresAt, "never"))
			fmt.Fprint(w, more)
			fmt.Fprintf(w, "\n  %s\n\n", k.Key)
		})
		if err != nil {
			return fmt.Errorf("credential %s was created, but its key could not be printed; revoke it: %w", k.ID, err)
		}
		// On stderr, because a script reads stdout.
		fmt.Fprintf(c.Stderr, "The key of %s is shown only this once; store it now.\n", k.ID)
		return nil
	})
}
