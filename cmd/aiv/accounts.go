package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/deletion"
	"aiv/store"
)

// accountsGroup returns the commands of aiv accounts.
func accountsGroup() cli.Command {
	return cli.Command{
		Name:    "accounts",
		Summary: "Create, list and erase accounts, and change their plans and quotas",
		Commands: []cli.Command{
			{
				Name:     "create",
				Summary:  "Create an account on a plan",
				Usage:    "-name NAME -plan CODE [-json]",
				Examples: []string{"aiv accounts create -name 'Acme' -plan growth"},
				Run:      audited(accountsCreate),
			},
			{
				Name:     "list",
				Summary:  "List the accounts, oldest first",
				Usage:    "[-json]",
				Examples: []string{"aiv accounts list"},
				Run:      reading(accountsList),
			},
			{
				Name:     "set-plan",
				Summary:  "Change the plan of an account, from the next request on",
				Usage:    "ID CODE [-json]",
				Examples: []string{"aiv accounts set-plan acct_01k3s4x0a1fvt8s9w2y7b6c5d4 growth"},
				Run:      audited(accountsSetPlan),
			},
			{
				Name:    "set-quota",
				Summary: "Set how many jobs an account may create in a month, from the next request on",
				Usage:   "ID -jobs-per-month N|none|plan [-json]",
				Examples: []string{
					"aiv accounts set-quota acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -jobs-per-month 1000",
					"aiv accounts set-quota acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -jobs-per-month plan",
				},
				Run: audited(accountsSetQuota),
			},
			{
				Name:     "erase",
				Summary:  "Delete all data of an account permanently; its usage totals are kept",
				Usage:    "ID -confirm NAME [-json]",
				Examples: []string{"aiv accounts erase acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -confirm 'Acme'"},
				Notes: "\nThe command revokes the account's keys and deletes its data. Requests that were admitted before may still add data: the command waits\n" +
					"until they have ended, " + cli.FormatDuration(deletion.SettleTime) + " after the keys were revoked, and deletes that too. The same command finishes an interrupted erasure.\n",
				Run: audited(accountsErase),
			},
		},
	}
}

// An account as the accounts commands print it. If own_quota is true, a null jobs_per_month means no quota. Otherwise
// jobs_per_month is always null.
type account struct {
	ID           string  `json:"id"`
	Name         string  `json:"name"`
	Plan         string  `json:"plan"`
	OwnQuota     bool    `json:"own_quota"` // false: the plan's quota applies
	JobsPerMonth *int64  `json:"jobs_per_month"`
	CreatedAt    string  `json:"created_at"`
	ErasedAt     *string `json:"erased_at"` // when its erasure began
}

func accountOf(a auth.Account) account {
	return account{a.ID.Text("acct"), a.Name, a.PlanCode, a.OwnQuota, a.JobsPerMonth, store.FormatTime(a.CreatedAt), store.FormatTimeOrNil(a.ErasedAt)}
}

// quota formats the account's quota for people. A nil number means no quota if the account has its own.
func (a account) quota() string {
	if !a.OwnQuota {
		return "of the plan"
	}
	return numberText(a.JobsPerMonth, "none")
}

// accountsCreate creates an account without keys. The plan must exist.
func accountsCreate(ctx context.Context, c *call) error {
	name := c.Flags.String("name", "", "the account's `NAME`")
	plan := c.Flags.String("plan", "", "the `CODE` of its plan")
	if _, err := c.Parse("-name", "-plan"); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		made, err := (&auth.Admin{Pool: pool, Actor: c.actor()}).CreateAccount(ctx, *name, *plan)
		if err != nil {
			return err
		}
		a := accountOf(made)
		return c.Print(a, func(w io.Writer) {
			fmt.Fprintf(w, "Account %s was created: %q on plan %s.\n", a.ID, a.Name, a.Plan)
		})
	})
}

// accountsList lists all accounts, including erased ones, whose usage totals are kept.
func accountsList(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&auth.Admin{Pool: pool}).Accounts(ctx)
		if err != nil {
			return err
		}
		accounts, rows := []account{}, [][]string{{"ID", "NAME", "PLAN", "JOBS PER MONTH", "CREATED", "ERASED"}}
		for _, f := range found {
			a := accountOf(f)
			accounts = append(accounts, a)
			rows = append(rows, []string{a.ID, a.Name, a.Plan, a.quota(), humanTime(&f.CreatedAt, ""), humanTime(f.ErasedAt, "no")})
		}
		return c.PrintList(accounts, rows, "There are no accounts; create one with aiv accounts create.")
	})
}

// accountsSetPlan moves an account to another plan. The account keeps its own quota, if it has one.
func accountsSetPlan(ctx context.Context, c *call) error {
	id, args, err := c.parseWithID("acct", "CODE")
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		moved, err := (&auth.Admin{Pool: pool, Actor: c.actor()}).SetAccountPlan(ctx, id, args[1])
		if err != nil {
			return err
		}
		a := accountOf(moved)
		return c.Print(a, func(w io.Writer) {
			fmt.Fprintf(w, "Account %s, %q, is now on plan %s.\n", a.ID, a.Name, a.Plan)
		})
	})
}

// accountsSetQuota gives an account its own quota, or restores its plan's.
func accountsSetQuota(ctx context.Context, c *call) error {
	// own false: the plan decides; own true and quota nil: no quota.
	own := true
	var quota *int64
	c.Flags.Func("jobs-per-month", "set the quota to `N|none|plan`: N jobs, no quota, or the quota of the account's plan", func(v string) error {
		own, quota = v != "plan", nil
		if v == "none" || v == "plan" {
			return nil
		}
		n, err := parseJobs(v)
		if quota = &n; err != nil {
			return fmt.Errorf("%w, or none or plan", err)
		}
		return nil
	})
	id, _, err := c.parseWithID("acct", "-jobs-per-month")
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		changed, err := (&auth.Admin{Pool: pool, Actor: c.actor()}).SetAccountQuota(ctx, id, own, quota)
		if err != nil {
			return err
		}
		a := accountOf(changed)
		return c.Print(a, func(w io.Writer) {
			switch {
			case !a.OwnQuota:
				fmt.Fprintf(w, "Account %s has the quota of plan %s.\n", a.ID, a.Plan)
			case a.JobsPerMonth == nil:
				fmt.Fprintf(w, "Account %s has no quota.\n", a.ID)
			default:
				fmt.Fprintf(w, "Account %s has a quota of %s per month.\n", a.ID, cli.Count(*a.JobsPerMonth, "job", "jobs"))
			}
		})
	})
}

// erased is what `aiv accounts erase` prints. Its numbers are of this call only: a repeated erasure counts what was
// left.
type erased struct {
	ID        string `json:"id"`
	Runs      int64  `json:"runs"`
	Jobs      int64  `json:"jobs"`
	Schedules int64  `json:"schedules"`
	Brands    int64  `json:"brands"`
	Questions int64  `json:"questions"`
	Insights  int64  `json:"recommendations_and_alerts"`
	Events    int64  `json:"events"`
}

// accountsErase erases an account. The account's name, which confirms the id, is replaced last, so the same command
// line can finish an interrupted erasure.
func accountsErase(ctx context.Context, c *call) error {
	// A flag instead of a prompt, so that scripts can erase accounts. An id alone is too easily mistaken.
	confirm := c.Flags.String("confirm", "", "the account's `NAME`, to confirm that its data is deleted permanently")
	id, args, err := c.parseWithID("acct", "-confirm")
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		admin := &auth.Admin{Pool: pool, Actor: c.actor()}
		account, err := admin.Account(ctx, id)
		if err != nil {
			return err
		}
		if account.Name != *confirm {
			return fmt.Errorf("the name of account %s is not %q; nothing was changed; see aiv accounts list", args[0], *confirm)
		}
		// end removes the line of progress before other output. It may be called more than once.
		report, end := c.Progress(runsDeleted)
		n, err := deletion.Account(ctx, admin, capability.All, id, report, func(d time.Duration) {
			end()
			fmt.Fprintf(c.Stderr, "Waiting %s for requests that were admitted before the keys were revoked.\n", cli.FormatDuration(d.Round(time.Second)))
		})
		end()
		if err != nil {
			return unfinished(err, n.Runs)
		}
		// n.Rows has the number of deleted rows by table.
		e := erased{args[0], n.Runs, n.Jobs, n.Rows["schedules"], n.Rows["brands"], n.Rows["own_questions"],
			n.Rows["recommendations"] + n.Rows["alerts"], n.Rows["events"]}
		return c.Print(e, func(w io.Writer) {
			fmt.Fprintf(w, "Account %s is erased: %s with %s, %s, %s, %s, %s and %s are deleted. Its usage totals are kept.\n", e.ID,
				cli.Count(e.Runs, "run", "runs"), cli.Count(e.Jobs, "job", "jobs"),
				cli.Count(e.Schedules, "schedule", "schedules"), cli.Count(e.Brands, "brand", "brands"),
				cli.Count(e.Questions, "question", "questions"),
				cli.Count(e.Insights, "recommendation or alert", "recommendations and alerts"),
				cli.Count(e.Events, "event", "events"))
		})
	})
}
