package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/gateway"
	"aiv/insights/webhooks"
	"aiv/runs/schedules"
	"aiv/store"
)

// schedulesGroup returns the commands of aiv schedules.
func schedulesGroup() cli.Command {
	return cli.Command{
		Name:    "schedules",
		Summary: "List, pause and resume the schedules of customers",
		Commands: []cli.Command{
			{
				Name:     "list",
				Summary:  "List the schedules, the longest due first",
				Usage:    "[-account ID] [-status active|paused] [-json]",
				Examples: []string{"aiv schedules list -status paused", "aiv schedules list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
				Run:      reading(schedulesList),
			},
			{
				Name:     "pause",
				Summary:  "Pause a schedule, so that only an operator can resume it",
				Usage:    "ID -note TEXT [-json]",
				Examples: []string{"aiv schedules pause sched_01k3s4x0a1fvt8s9w2y7b6c5d4 -note 'incident 12'"},
				Run:      changeSchedule((*schedules.Admin).Pause),
			},
			{
				Name:     "resume",
				Summary:  "End a pause, except one by the customer; missed due times are not made up",
				Usage:    "ID -note TEXT [-json]",
				Examples: []string{"aiv schedules resume sched_01k3s4x0a1fvt8s9w2y7b6c5d4 -note 'incident 12 is over'"},
				Run:      changeSchedule((*schedules.Admin).Resume),
			},
		},
	}
}

// A schedule as the schedules commands print it. next_at is null while it is paused. last_due_at, last_status and
// last_code are of the latest occurrence, and null without one. credential_id is the credential of the customer's
// latest change, for which its runs are created.
type schedule struct {
	ID           string  `json:"id"`
	AccountID    string  `json:"account_id"`
	Name         string  `json:"name"`
	Status       string  `json:"status"`
	PausedReason *string `json:"paused_reason"`
	Cadence      string  `json:"cadence"`
	At           string  `json:"at"`
	Weekday      *string `json:"weekday"`
	Day          *int    `json:"day"`
	TimeZone     string  `json:"time_zone"`
	NextAt       *string `json:"next_at"`
	LastDueAt    *string `json:"last_due_at"`
	LastStatus   *string `json:"last_status"`
	LastCode     *string `json:"last_code"`
	CredentialID string  `json:"credential_id"`
}

func scheduleOf(s *schedules.AdminSchedule) schedule {
	return schedule{s.ID.Text("sched"), s.AccountID.Text("acct"), s.Name, s.Status, s.PausedReason, s.Cadence, s.AtText(), s.Weekday, s.Day, s.Zone,
		store.FormatTimeOrNil(s.NextAt), store.FormatTimeOrNil(s.LastDueAt), s.LastStatus, s.LastCode, s.CredentialID.Text("cred")}
}

// state returns the status with the reason of a pause.
func (s *schedule) state() string {
	if s.PausedReason != nil {
		return "paused: " + *s.PausedReason
	}
	return s.Status
}

// rule returns the rule in a line, such as "weekly monday 06:00 Europe/Rome".
func (s *schedule) rule() string {
	words := []string{s.Cadence}
	if s.Weekday != nil {
		words = append(words, *s.Weekday)
	}
	if s.Day != nil {
		words = append(words, fmt.Sprint(*s.Day))
	}
	return strings.Join(append(words, s.At, s.TimeZone), " ")
}

// last returns what became of the latest due time.
func (s *schedule) last() string {
	switch {
	case s.LastStatus == nil:
		return "none"
	case s.LastCode == nil:
		return *s.LastStatus
	}
	return *s.LastStatus + ": " + *s.LastCode
}

// schedulesList lists schedules of one account, or of all.
func schedulesList(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only the schedules of the account with this `ID`")
	status := c.Flags.String("status", "", "only schedules with this `STATUS`: "+strings.Join(schedules.Statuses, " or "))
	if _, err := c.Parse(); err != nil {
		return err
	}
	if c.Given("status") {
		if err := c.known("-status", []string{*status}, schedules.Statuses); err != nil {
			return err
		}
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := scheduleAdmin(pool, "").List(ctx, account, *status)
		if err != nil {
			return err
		}
		all, rows := []schedule{}, [][]string{{"ID", "ACCOUNT", "NAME", "STATE", "RULE", "NEXT", "LAST", "CREDENTIAL"}}
		for i := range found {
			s := scheduleOf(&found[i])
			all = append(all, s)
			rows = append(rows, []string{s.ID, s.AccountID, s.Name, s.state(), s.rule(), humanTime(found[i].NextAt, "none"), s.last(), s.CredentialID})
		}
		return c.PrintList(all, rows, "There are no schedules.")
	})
}

// scheduleAdmin returns an Admin. Only changes need the actor.
func scheduleAdmin(pool *pgxpool.Pool, actor string) *schedules.Admin {
	return &schedules.Admin{Actor: actor, Config: schedules.Config{Pool: pool, NewID: store.NewID, Record: webhooks.Record, Events: gateway.EventData{}}}
}

// changeSchedule returns the Run function of a command that changes a schedule and prints it.
func changeSchedule(
	change func(*schedules.Admin, context.Context, store.ID, string) (*schedules.AdminSchedule, error),
) func(context.Context, *cli.Call) error {
	return audited(func(ctx context.Context, c *call) error {
		note := c.Flags.String("note", "", "a `TEXT` that gives the reason")
		id, _, err := c.parseWithID("sched", "-note")
		if err != nil {
			return err
		}
		return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
			changed, err := change(scheduleAdmin(pool, c.actor()), ctx, id, *note)
			switch {
			case errors.Is(err, schedules.ErrNotFound):
				return fmt.Errorf("there is no schedule %s; see aiv schedules list", id.Text("sched"))
			case errors.Is(err, schedules.ErrByCustomer):
				return fmt.Errorf("the customer paused %s; only the customer can make it active again", id.Text("sched"))
			case err != nil:
				return err
			}
			s := scheduleOf(changed)
			return c.Print(s, func(out io.Writer) {
				fmt.Fprintf(out, "Schedule %s, %q, is %s; next due: %s.\n", s.ID, s.Name, s.state(), humanTime(changed.NextAt, "none"))
			})
		})
	})
}
