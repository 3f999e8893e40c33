package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
)

// accountQuota is what `aiv accounts set-quota` prints. With own_quota false, the plan's quota applies.
type accountQuota struct {
	ID           string `json:"id"`
	Plan         string `json:"plan"`
	OwnQuota     bool   `json:"own_quota"`
	JobsPerMonth *int64 `json:"jobs_per_month"`
}

func accountsSetQuota(ctx context.Context, c *call) error {
	c.JSONFlag()
	c.databaseFlags()
	actor := c.actorFlag()
	own := true
	var quota *int64
	c.Flags.Func("jobs-per-month", "the jobs, `N|none|plan`, that the account may order in a month", func(v string) error {
		own, quota = v != "plan", nil
		if v == "none" || v == "plan" {
			return nil
		}
		n, err := parseJobs(v)
		quota = &n
		return err
	})
	args, err := c.Parse("ID", "-jobs-per-month")
	if err != nil {
		return err
	}
	id, err := c.accountID("ID", args[0])
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		a, err := (&auth.Admin{Pool: pool, Actor: actor()}).SetAccountQuota(ctx, id, own, quota)
		if err != nil {
			return err
		}
		q := accountQuota{a.ID.Text("acct"), a.PlanCode, a.OwnQuota, a.JobsPerMonth}
		return c.Print(q, func(w io.Writer) {
			switch {
			case !q.OwnQuota:
				fmt.Fprintf(w, "Account %s has the quota of plan %s.\n", q.ID, q.Plan)
			case q.JobsPerMonth == nil:
				fmt.Fprintf(w, "Account %s has no quota.\n", q.ID)
			default:
				fmt.Fprintf(w, "Account %s may order %d jobs per month.\n", q.ID, *q.JobsPerMonth)
			}
		})
	})
}
