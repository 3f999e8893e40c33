package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
	"aiv/runs"
	"aiv/runs/results"
	"aiv/store"
)

// jobsGroup returns the commands of aiv jobs.
func jobsGroup() cli.Command {
	return cli.Command{
		Name:    "jobs",
		Summary: "List jobs",
		Commands: []cli.Command{
			{
				Name:    "list",
				Summary: "List the jobs of a run, or of the runs that are not final",
				Usage:   "[-state STATE[,...]] [-provider CODE] [-run ID] [-limit N] [-json]",
				Examples: []string{
					"aiv jobs list -state running -provider openai",
					"aiv jobs list -run run_01k3s4x0a1fvt8s9w2y7b6c5d4 -state failed",
				},
				Run: reading(jobsList),
			},
		},
	}
}

// A job as `aiv jobs list` prints it. The error is null unless the job failed. A time is null if the job has not
// started or finished.
type job struct {
	ID           string  `json:"id"`
	AccountID    string  `json:"account_id"`
	RunID        string  `json:"run_id"`
	ModelID      string  `json:"model_id"`
	Provider     string  `json:"provider"`
	QuestionID   string  `json:"question_id"`
	Repetition   int     `json:"repetition"`
	Status       string  `json:"status"`
	Attempts     int     `json:"attempts"`
	ErrorCode    *string `json:"error_code"`
	ErrorMessage *string `json:"error_message"`
	StartedAt    *string `json:"started_at"`
	FinishedAt   *string `json:"finished_at"`
}

// jobsList lists the jobs of one run, or of the newest runs with such jobs. Without -run, it reads only runs that
// are queued or running.
func jobsList(ctx context.Context, c *call) error {
	var states []string
	c.ListFlag(&states, "state", "only jobs in these states, a comma-separated `LIST` of "+strings.Join(results.Statuses, ", "))
	provider := c.Flags.String("provider", "", "only jobs of the provider with this `CODE`")
	var id *store.ID
	c.idFlag(&id, "run", "run", "only jobs of the run with this `ID` (default: of the newest runs that are not final)")
	var limit int
	c.listLimitFlag(&limit, 50, "jobs")
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := c.known("-state", states, results.Statuses); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		// Without this check, a misspelled provider would look like one without jobs.
		if c.Given("provider") {
			if err := knownProvider(ctx, pool, *provider); err != nil {
				return err
			}
		}
		listed, cut, err := findJobs(ctx, pool, id, *provider, states, limit+1)
		if err != nil {
			return err
		}
		// With more jobs than the limit, the message of firstOf is enough.
		if cut && len(listed) <= limit {
			fmt.Fprintf(c.Stderr, "Only the newest %d runs that can have such jobs were read; use -run for an older one.\n", maxListed)
		}
		listed = firstOf(c, listed, limit, "jobs")
		rows := [][]string{{"ID", "RUN", "PROVIDER", "MODEL", "QUESTION", "REPETITION", "STATE", "ATTEMPTS", "ERROR"}}
		for _, j := range listed {
			code := "none"
			if j.ErrorCode != nil {
				code = *j.ErrorCode
			}
			rows = append(rows, []string{j.ID, j.RunID, j.Provider, j.ModelID, j.QuestionID, strconv.Itoa(j.Repetition), j.Status, strconv.Itoa(j.Attempts), code})
		}
		none := "No jobs match."
		if id == nil {
			none = "No jobs of queued or running runs match; -run lists the jobs of any run."
		}
		return c.PrintList(listed, rows, none)
	})
}

// knownProvider refuses the code of a provider that does not exist.
func knownProvider(ctx context.Context, pool *pgxpool.Pool, code string) error {
	providers, err := catalog.Providers(ctx, pool)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(providers, func(p catalog.Provider) bool { return p.Code == code }) {
		return fmt.Errorf("there is no provider %q; see aiv providers list", code)
	}
	return nil
}

// findJobs returns the first jobs of one run, or of the newest runs that may have jobs in the states. cut reports
// whether there are older such runs, which it did not read.
func findJobs(ctx context.Context, pool *pgxpool.Pool, run *store.ID, provider string, states []string, limit int) (found []job, cut bool, err error) {
	// of has the runs whose jobs are read, newest first.
	var of []runs.Run
	if run == nil {
		of, cut, err = newestRuns(ctx, pool, states)
	} else {
		var r *runs.Run
		if r, err = findRun(ctx, pool, *run); err == nil {
			of = []runs.Run{*r}
		}
	}
	if err != nil {
		return nil, false, err
	}
	known, err := catalog.Read(ctx, pool)
	if err != nil {
		return nil, false, err
	}
	found = []job{}
	for _, r := range of {
		if !hasJobs(&r, states) {
			continue
		}
		// By model, so that models of other providers are not read.
		for _, model := range r.ModelIDs {
			// The provider of a model that the catalog does not have is unknown.
			code := ""
			if m := known.Model(model); m != nil {
				code = m.Provider
			}
			if provider != "" && code != provider {
				continue
			}
			jobs, err := jobsOfModel(ctx, pool, &r, model, code, states, limit-len(found))
			if err != nil {
				return nil, false, err
			}
			if found = append(found, jobs...); len(found) == limit {
				return found, cut, nil
			}
		}
	}
	return found, cut, nil
}

// newestRuns returns the newest runs that may have jobs in the states and are not final. cut reports whether there are
// older ones.
func newestRuns(ctx context.Context, pool *pgxpool.Pool, states []string) (newest []runs.Run, cut bool, err error) {
	statuses := []string{"running"}
	if len(states) == 0 || slices.Contains(states, "queued") {
		statuses = append(statuses, "queued") // a queued run has no other jobs
	}
	// One run more than is returned shows whether there are older ones.
	newest, err = runs.Recent(ctx, pool, nil, statuses, maxListed+1)
	return newest[:min(len(newest), maxListed)], len(newest) > maxListed, err
}

// jobsOfModel returns the first jobs of a run on a model of a provider.
func jobsOfModel(ctx context.Context, pool *pgxpool.Pool, r *runs.Run, model, provider string, states []string, limit int) (found []job, err error) {
	filter := results.Filter{Statuses: states, ModelID: model}
	// Large answers end a page before its limit.
	for after, more := int32(0), true; more && len(found) < limit; {
		var page []results.Result
		page, more, err = results.List(ctx, pool, r.AccountID, r.ID, filter, after, limit-len(found))
		if errors.Is(err, runs.ErrNotFound) { // it may have been deleted since
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, j := range page {
			after = j.Key.Ordinal
			found = append(found, job{j.Key.String(), r.AccountID.Text("acct"), r.ID.Text("run"), model, provider, j.QuestionID, j.Repetition,
				j.Status, j.Attempts, j.ErrorCode, j.ErrorMessage, store.FormatTimeOrNil(j.StartedAt), store.FormatTimeOrNil(j.FinishedAt)})
		}
	}
	return found, nil
}

// hasJobs reports whether a run has jobs in one of the states, or in any state if there are none.
func hasJobs(r *runs.Run, states []string) bool {
	// The counters of the run make it unnecessary to read its jobs.
	counts := map[string]int{"queued": r.Queued(), "running": r.Running, "completed": r.Completed, "failed": r.Failed, "canceled": r.Canceled}
	return len(states) == 0 || slices.ContainsFunc(states, func(s string) bool { return counts[s] > 0 })
}
