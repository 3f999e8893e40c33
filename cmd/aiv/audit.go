package main

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
)

// auditGroup returns the commands of aiv audit.
func auditGroup() cli.Command {
	return cli.Command{
		Name:    "audit",
		Summary: "List the changes that operators made, and the providers that workers reported unavailable",
		Commands: []cli.Command{
			{
				Name:     "list",
				Summary:  "List changes, newest first",
				Usage:    "[-subject ID] [-by ACTOR] [-limit N] [-json]",
				Examples: []string{"aiv audit list", "aiv audit list -subject cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
				Run:      reading(auditList),
			},
		},
	}
}

// A change is an entry of the audit log as `aiv audit list` prints it. The subject is an id or a code; the detail
// depends on the action and never has a secret.
type change struct {
	At      string         `json:"at"`
	Actor   string         `json:"actor"`
	Action  string         `json:"action"`
	Subject string         `json:"subject"`
	Detail  map[string]any `json:"detail"`
}

// auditList reads one change more than it prints, which tells firstOf that there are more.
func auditList(ctx context.Context, c *call) error {
	var f store.AuditFilter
	c.Flags.StringVar(&f.Subject, "subject", "", "only changes of the record with this `ID` or code")
	c.Flags.StringVar(&f.Actor, "by", "", "only changes made by this `ACTOR`")
	var limit int
	c.listLimitFlag(&limit, 100, "changes")
	if _, err := c.Parse(); err != nil {
		return err
	}
	f.Limit = limit + 1
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := store.AuditLog(ctx, pool, f)
		if err != nil {
			return err
		}
		changes, rows := []change{}, [][]string{{"AT", "ACTOR", "ACTION", "SUBJECT", "DETAIL"}}
		for _, f := range firstOf(c, found, limit, "changes") {
			detail, err := json.Marshal(f.Detail)
			if err != nil {
				detail = []byte("?") // cannot happen: the detail was read as JSON
			}
			changes = append(changes, change{store.FormatTime(f.At), f.Actor, f.Action, f.Subject, f.Detail})
			rows = append(rows, []string{humanTime(&f.At, ""), f.Actor, f.Action, f.Subject, string(detail)})
		}
		return c.PrintList(changes, rows, "There are no changes.")
	})
}
