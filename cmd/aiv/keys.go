package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
)

// keysGroup returns the commands of aiv keys.
func keysGroup() cli.Command {
	return cli.Command{
		Name:    "keys",
		Summary: "Create, change, rotate and revoke credentials",
		Commands: []cli.Command{
			{
				Name:    "create",
				Summary: "Create a credential, and show its key once",
				Usage:   "-account ID -name NAME -scopes SCOPE[,...] [-rate N] [-expires TIME|never] [-json]",
				Examples: []string{
					"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read,runs:write",
					"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read -json >key.json",
				},
				Run: audited(keysCreate),
			},
			{
				Name:     "list",
				Summary:  "List credentials, oldest first",
				Usage:    "[-account ID] [-json]",
				Examples: []string{"aiv keys list", "aiv keys list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
				Run:      reading(keysList),
			},
			{
				Name:    "set",
				Summary: "Change a credential, from the next request on",
				Usage:   "ID [-name NAME] [-scopes SCOPE[,...]] [-rate N] [-expires TIME|never] [-json]",
				Examples: []string{
					"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -rate 600",
					"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -expires 2031-01-31T00:00:00Z",
				},
				Run: audited(keysSet),
			},
			{
				Name:     "rotate",
				Summary:  "Create a successor, show its key once, and expire the old key after a grace period",
				Usage:    "ID [-grace 24h] [-expires TIME|never] [-json]",
				Examples: []string{"aiv keys rotate cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -grace 1h", "aiv keys rotate cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -expires 2031-01-31T00:00:00Z"},
				Run:      audited(keysRotate),
			},
			{
				Name:     "revoke",
				Summary:  "Revoke a credential permanently, from the next request on",
				Usage:    "ID [-json]",
				Examples: []string{"aiv keys revoke cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      switchKey((*auth.Admin).RevokeKey),
			},
			{
				Name:     "disable",
				Summary:  "Suspend a credential until it is enabled",
				Usage:    "ID [-json]",
				Examples: []string{"aiv keys disable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      switchKey((*auth.Admin).DisableKey),
			},
			{
				Name:     "enable",
				Summary:  "End the suspension of a credential",
				Usage:    "ID [-json]",
				Examples: []string{"aiv keys enable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      switchKey((*auth.Admin).EnableKey),
			},
		},
	}
}

// A credential as the keys commands print it. A null expires_at means that it never expires, a null disabled_at or
// revoked_at that it is not disabled or revoked. rotated_from is the id of its predecessor.
type credential struct {
	ID          string   `json:"id"`
	AccountID   string   `json:"account_id"`
	Name        string   `json:"name"`
	KeyPrefix   string   `json:"key_prefix"`
	Scopes      []string `json:"scopes"`
	RateLimit   int      `json:"rate_limit_per_minute"`
	State       string   `json:"state"` // active, disabled, expired or revoked
	ExpiresAt   *string  `json:"expires_at"`
	DisabledAt  *string  `json:"disabled_at"`
	RevokedAt   *string  `json:"revoked_at"`
	RotatedFrom *string  `json:"rotated_from"`
	CreatedAt   string   `json:"created_at"`
}

// credentialOf leaves out the raw key, which only issueKey prints.
func credentialOf(c auth.Issued) credential {
	var from *string
	if c.RotatedFrom != nil {
		text := c.RotatedFrom.Text("cred")
		from = &text
	}
	return credential{
		ID: c.ID.Text("cred"), AccountID: c.AccountID.Text("acct"), Name: c.Name, KeyPrefix: c.KeyPrefix, Scopes: c.Scopes,
		RateLimit: c.RateLimit, State: c.State, ExpiresAt: store.FormatTimeOrNil(c.ExpiresAt), DisabledAt: store.FormatTimeOrNil(c.DisabledAt),
		RevokedAt: store.FormatTimeOrNil(c.RevokedAt), RotatedFrom: from, CreatedAt: store.FormatTime(c.CreatedAt),
	}
}

// keysList lists credentials of one account, or of all. The keys themselves are not stored; KeyPrefix identifies them.
func keysList(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only credentials of the account with this `ID`")
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&auth.Admin{Pool: pool}).Keys(ctx, account)
		if err != nil {
			return err
		}
		credentials, rows := []credential{}, [][]string{{"ID", "ACCOUNT", "NAME", "KEY", "SCOPES", "RATE", "STATE", "EXPIRES"}}
		for _, f := range found {
			k := credentialOf(f)
			credentials = append(credentials, k)
			rows = append(rows, []string{k.ID, k.AccountID, k.Name, k.KeyPrefix + "…", cli.List(k.Scopes), strconv.Itoa(k.RateLimit), k.State,
				humanTime(f.ExpiresAt, "never")})
		}
		return c.PrintList(credentials, rows, "There are no credentials; create one with aiv keys create.")
	})
}

// keysSet changes the terms whose flags are given. A nil term is not changed.
func keysSet(ctx context.Context, c *call) error {
	var terms auth.Terms
	c.termsFlags(&terms, " (default: unchanged)", "unchanged", "unchanged")
	id, _, err := c.parseWithID("cred")
	if err != nil {
		return err
	}
	if terms.Name == nil && terms.Scopes == nil && terms.RateLimit == nil && terms.ExpiresAt == nil {
		return c.Wrong("nothing to set: give -name, -scopes, -rate or -expires")
	}
	// SetKey checks the terms again. Here, a wrong value is an invalid command line, with exit code 2.
	if err := terms.Check(); err != nil {
		return c.Wrong("%v", err)
	}
	return c.changeKey(ctx, func(a *auth.Admin) (auth.Issued, error) { return a.SetKey(ctx, id, terms) })
}

// termsFlags declares the terms of a credential. rate and expiry say which it has without -rate and -expires, note what
// applies without -name and -scopes.
func (c *call) termsFlags(terms *auth.Terms, note, rate, expiry string) {
	c.TextFlag(&terms.Name, "name", "the credential's `NAME`"+note)
	c.ListFlag(&terms.Scopes, "scopes", "its scopes: a comma-separated `LIST` of "+strings.Join(auth.Scopes, ", ")+note)
	c.rateFlag(&terms.RateLimit, "", rate)
	c.expiryFlag(&terms.ExpiresAt, "its expiry `TIME` (RFC 3339), or never (default: "+expiry+")")
}

// switchKey returns the Run function of a command whose only argument is a credential's id.
func switchKey(change func(*auth.Admin, context.Context, store.ID) (auth.Issued, error)) func(context.Context, *cli.Call) error {
	return audited(func(ctx context.Context, c *call) error {
		id, _, err := c.parseWithID("cred")
		if err != nil {
			return err
		}
		return c.changeKey(ctx, func(a *auth.Admin) (auth.Issued, error) { return change(a, ctx, id) })
	})
}

// changeKey changes a credential and prints its new state.
func (c *call) changeKey(ctx context.Context, change func(*auth.Admin) (auth.Issued, error)) error {
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		changed, err := change(&auth.Admin{Pool: pool, Actor: c.actor()})
		if err != nil {
			return err
		}
		k := credentialOf(changed)
		return c.Print(k, func(w io.Writer) {
			fmt.Fprintf(w, "Credential %s, %q, is %s: scopes %s; %d requests per minute; expires: %s.\n",
				k.ID, k.Name, k.State, cli.List(k.Scopes), k.RateLimit, humanTime(changed.ExpiresAt, "never"))
		})
	})
}
