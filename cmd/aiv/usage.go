package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/runs"
	"aiv/store"
)

// monthlyUsage is what one account has used in one UTC month.
type monthlyUsage struct {
	AccountID string `json:"account_id"`
	Name      string `json:"name"`
	Month     string `json:"month"` // 2026-11
	Runs      int64  `json:"runs"`
	Jobs      int64  `json:"jobs"`
	Completed int64  `json:"completed"`
	Failed    int64  `json:"failed"`
	Canceled  int64  `json:"canceled"`
}

// monthForm is the layout of a month for package time.
const monthForm = "2006-01"

// usage lists monthly totals. They include runs that have been purged or erased since.
func usage(ctx context.Context, c *call) error {
	var from, to *time.Time
	c.monthFlag(&from, "from", "the first `MONTH` to add up, YYYY-MM in UTC (default: the first with runs)")
	c.monthFlag(&to, "to", "the last `MONTH` to add up, YYYY-MM in UTC (default: the last with runs)")
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only the account with this `ID`")
	if _, err := c.Parse(); err != nil {
		return err
	}
	if from != nil && to != nil && to.Before(*from) {
		return c.Wrong("-to must not be before -from")
	}
	f := runs.UsageFilter{AccountID: account, From: from}
	if to != nil {
		f.To = new(to.AddDate(0, 1, 0)) // includes the month itself
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := runs.Usage(ctx, pool, f)
		if err != nil {
			return err
		}
		used, rows := []monthlyUsage{}, [][]string{{"MONTH", "ACCOUNT", "NAME", "RUNS", "JOBS", "COMPLETED", "FAILED", "CANCELED"}}
		for _, f := range found {
			u := monthlyUsage{f.AccountID.Text("acct"), f.AccountName, f.Month.UTC().Format(monthForm), f.Runs, f.Jobs, f.Completed, f.Failed, f.Canceled}
			used = append(used, u)
			row := []string{u.Month, u.AccountID, u.Name}
			for _, n := range []int64{u.Runs, u.Jobs, u.Completed, u.Failed, u.Canceled} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			rows = append(rows, row)
		}
		return c.PrintList(used, rows, "There are no runs.")
	})
}

// monthFlag declares a flag that leaves *to nil when it is not given, and otherwise sets it to the first moment of
// the month in UTC.
func (c *call) monthFlag(to **time.Time, name, usage string) {
	c.Flags.Func(name, usage, func(v string) error {
		month, err := time.Parse(monthForm, v)
		if err != nil {
			return errors.New("must be a month such as 2026-11")
		}
		*to = &month
		return nil
	})
}
