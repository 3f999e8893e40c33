package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/runs"
)

// plansGroup returns the commands of aiv plans.
func plansGroup() cli.Command {
	return cli.Command{
		Name:    "plans",
		Summary: "Set and list plans",
		Commands: []cli.Command{
			{
				Name:    "set",
				Summary: "Create or replace a plan: settings that are not given are reset",
				Usage:   "CODE -features api_access[,...] [-rate N] [-jobs-per-month N] [-unfinished-jobs N] [-json]",
				Examples: []string{
					"aiv plans set growth -features api_access -rate 120",
					"aiv plans set trial -features ''",
				},
				Run: audited(plansSet),
			},
			{
				Name:     "list",
				Summary:  "List the plans",
				Usage:    "[-json]",
				Examples: []string{"aiv plans list"},
				Run:      reading(plansList),
			},
		},
	}
}

// A plan as the plans commands print it. Without a rate, its credentials have the service's default.
type plan struct {
	Code      string   `json:"code"`
	Features  []string `json:"features"`
	RateLimit *int     `json:"rate_limit_per_minute"`

	JobsPerMonth      *int64 `json:"jobs_per_month"`      // null: no quota
	MaxUnfinishedJobs *int64 `json:"max_unfinished_jobs"` // null: the service's default
}

// planOf works because both types have the same fields: a new field of auth.Plan fails to compile until it is
// printed.
func planOf(p auth.Plan) plan { return plan(p) }

// rate formats the plan's rate for people.
func (p plan) rate() string {
	return numberText(p.RateLimit, fmt.Sprintf("%d (default)", auth.DefaultRateLimit))
}

// plansSet creates or replaces a plan. A setting whose flag is not given is nil, which resets it.
func plansSet(ctx context.Context, c *call) error {
	var want auth.Plan
	c.ListFlag(&want.Features, "features", "the plan's features, a comma-separated `LIST`; without api_access only GET /v1/me is allowed")
	c.rateFlag(&want.RateLimit, " for credentials without their own rate", strconv.Itoa(auth.DefaultRateLimit))
	jobsFlag(c, &want.JobsPerMonth, "jobs-per-month", "the quota of each account: `N` jobs in a month (default: no quota)")
	jobsFlag(c, &want.MaxUnfinishedJobs, "unfinished-jobs",
		fmt.Sprintf("`N` jobs of each account may be unfinished at a time (default: %d)", runs.DefaultMaxUnfinishedJobs))
	args, err := c.Parse("CODE", "-features")
	if err != nil {
		return err
	}
	want.Code = args[0]
	if err := want.Check(); err != nil {
		return c.Wrong("%v", err)
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		admin := &auth.Admin{Pool: pool, Actor: c.actor()}
		if err := admin.SetPlan(ctx, want); err != nil {
			return err
		}
		plans, err := admin.Plans(ctx)
		if err != nil {
			return err
		}
		// The plan was just written, and plans are never deleted, so i is not -1.
		i := slices.IndexFunc(plans, func(p auth.Plan) bool { return p.Code == want.Code })
		p := planOf(plans[i])
		return c.Print(p, func(w io.Writer) {
			fmt.Fprintf(w, "Plan %s is set: features %s; %s requests per minute", p.Code, cli.List(p.Features), p.rate())
			if p.JobsPerMonth != nil {
				fmt.Fprintf(w, "; %s per month", cli.Count(*p.JobsPerMonth, "job", "jobs"))
			}
			if p.MaxUnfinishedJobs != nil {
				fmt.Fprintf(w, "; %s", cli.Count(*p.MaxUnfinishedJobs, "unfinished job", "unfinished jobs"))
			}
			fmt.Fprintln(w, ".")
			if !slices.Contains(p.Features, auth.APIAccess) {
				fmt.Fprintf(w, "Without the feature %s, its accounts can only read their identity.\n", auth.APIAccess)
			}
		})
	})
}

// plansList shows the defaults of the service where a plan has no value of its own.
func plansList(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&auth.Admin{Pool: pool}).Plans(ctx)
		if err != nil {
			return err
		}
		plans, rows := []plan{}, [][]string{{"CODE", "FEATURES", "REQUESTS PER MINUTE", "JOBS PER MONTH", "UNFINISHED JOBS"}}
		for _, f := range found {
			p := planOf(f)
			plans = append(plans, p)
			rows = append(rows, []string{p.Code, cli.List(p.Features), p.rate(), numberText(p.JobsPerMonth, "none"),
				numberText(p.MaxUnfinishedJobs, fmt.Sprintf("%d (default)", runs.DefaultMaxUnfinishedJobs))})
		}
		return c.PrintList(plans, rows, "There are no plans; create one with aiv plans set.")
	})
}

// jobsFlag declares a flag whose value is a number of jobs, from 0. It leaves *to nil when the flag is not given.
func jobsFlag(c *call, to **int64, name, usage string) {
	c.Flags.Func(name, usage, func(v string) error {
		n, err := parseJobs(v)
		*to = &n
		return err
	})
}

// parseJobs reads a number of jobs. 0 is a limit that admits none.
func parseJobs(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.New("must be a number of jobs, 0 or more")
	}
	return n, nil
}
