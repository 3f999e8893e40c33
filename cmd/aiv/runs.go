package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/gateway"
	"aiv/runs"
	"aiv/store"
)

// runsGroup returns the commands of aiv runs.
func runsGroup() cli.Command {
	return cli.Command{
		Name:    "runs",
		Summary: "List, show and cancel runs",
		Commands: []cli.Command{
			{
				Name:     "list",
				Summary:  "List runs, newest first",
				Usage:    "[-account ID] [-status STATUS[,...]] [-limit N] [-json]",
				Examples: []string{"aiv runs list", "aiv runs list -status queued,running -limit 200"},
				Run:      reading(runsList),
			},
			{
				Name:     "show",
				Summary:  "Show a run",
				Usage:    "ID [-json]",
				Examples: []string{"aiv runs show run_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      reading(runsShow),
			},
			{
				Name:     "cancel",
				Summary:  "Cancel a run that is not final; completed jobs stay",
				Usage:    "ID [-json]",
				Examples: []string{"aiv runs cancel run_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      audited(runsCancel),
			},
		},
	}
}

// An operatorsRun is a run as the runs commands print it: as the API returns it, with its account.
type operatorsRun struct {
	AccountID string          `json:"account_id"`
	Run       json.RawMessage `json:"run"`
}

// operatorsRunOf encodes a run as GET /v1/runs/{id} does.
func operatorsRunOf(r *runs.Run) operatorsRun {
	return operatorsRun{r.AccountID.Text("acct"), gateway.EncodeRun(r)}
}

// runsList lists runs of one account, or of all. It reads one run more than it prints, which tells firstOf that there
// are more.
func runsList(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only runs of the account with this `ID`")
	var statuses []string
	c.ListFlag(&statuses, "status", "only runs in these states, a comma-separated `LIST` of "+strings.Join(runs.Statuses, ", "))
	var limit int
	c.listLimitFlag(&limit, 50, "runs")
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := c.known("-status", statuses, runs.Statuses); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := runs.Recent(ctx, pool, account, statuses, limit+1)
		if err != nil {
			return err
		}
		listed, rows := []operatorsRun{}, [][]string{{"ID", "ACCOUNT", "STATUS", "JOBS", "RUNNING", "COMPLETED", "FAILED", "CANCELED", "CREATED"}}
		for _, r := range firstOf(c, found, limit, "runs") {
			listed = append(listed, operatorsRunOf(&r))
			rows = append(rows, []string{r.ID.Text("run"), r.AccountID.Text("acct"), r.Status, strconv.Itoa(r.TotalJobs), strconv.Itoa(r.Running),
				strconv.Itoa(r.Completed), strconv.Itoa(r.Failed), strconv.Itoa(r.Canceled), humanTime(&r.CreatedAt, "")})
		}
		return c.PrintList(listed, rows, "No runs match.")
	})
}

func runsShow(ctx context.Context, c *call) error {
	return c.withRun(ctx, func(_ *pgxpool.Pool, r *runs.Run) (*runs.Run, error) { return r, nil })
}

// runsCancel cancels a run as its customer can, and records it in the audit log.
func runsCancel(ctx context.Context, c *call) error {
	return c.withRun(ctx, func(pool *pgxpool.Pool, r *runs.Run) (*runs.Run, error) {
		// Finished is called in the transaction of the cancellation: the audit record and the events are written with
		// it, or not at all.
		canceler := runs.New(runs.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 1, Finished: func(ctx context.Context, tx store.Tx, finished []runs.Run) error {
			if err := store.Audit(ctx, tx, store.Change{Actor: c.actor(), Action: "runs.cancel", Subject: r.ID.Text("run")}); err != nil {
				return err
			}
			return service.RecordFinished(ctx, tx, finished)
		}})
		canceled, err := canceler.Cancel(ctx, r.AccountID, r.ID)
		// Cancel returns the run with this error.
		if errors.Is(err, runs.ErrFinal) {
			err = fmt.Errorf("run %s is %s and cannot be canceled", r.ID.Text("run"), canceled.Status)
		}
		return canceled, err
	})
}

// withRun is a command whose argument is a run, of which it prints what f returns. f may change the run, and then
// returns the changed one.
func (c *call) withRun(ctx context.Context, f func(*pgxpool.Pool, *runs.Run) (*runs.Run, error)) error {
	id, args, err := c.parseWithID("run")
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		r, err := findRun(ctx, pool, id)
		if err == nil {
			r, err = f(pool, r)
		}
		if err != nil {
			return err
		}
		return c.Print(operatorsRunOf(r), func(w io.Writer) {
			fmt.Fprintf(w, "Run %s of %s is %s: %d queued, %d running, %d completed, %d failed, %d canceled. Created: %s; started: %s; finished: %s.\n",
				args[0], r.AccountID.Text("acct"), r.Status, r.Queued(), r.Running, r.Completed, r.Failed, r.Canceled,
				humanTime(&r.CreatedAt, ""), humanTime(r.StartedAt, "not yet"), humanTime(r.FinishedAt, "not yet"))
		})
	})
}

// findRun returns a run of any account. Its error for an unknown id tells the operator where to look.
func findRun(ctx context.Context, pool *pgxpool.Pool, id store.ID) (*runs.Run, error) {
	r, err := runs.Find(ctx, pool, id)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, fmt.Errorf("there is no run %s; see aiv runs list", id.Text("run"))
	}
	return r, err
}
