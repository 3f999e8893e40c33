package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store"
)

// workersGroup returns the commands of aiv workers.
func workersGroup() cli.Command {
	return cli.Command{
		Name:    "workers",
		Summary: "Create, list and revoke workers",
		Commands: []cli.Command{
			{
				Name:    "create",
				Summary: "Create a worker, and show its token once",
				Usage:   "-name NAME [-providers CODE[,...]] [-json]",
				Examples: []string{
					"aiv workers create -name eu-1 -providers openai,mistral",
					"aiv workers create -name eu-1 -json >worker.json",
				},
				Run: audited(workersCreate),
			},
			{
				Name:     "list",
				Summary:  "List the workers, oldest first",
				Usage:    "[-json]",
				Examples: []string{"aiv workers list"},
				Run:      reading(workersList),
			},
			{
				Name:     "revoke",
				Summary:  "Revoke a worker's token permanently, from the next request on",
				Usage:    "ID [-json]",
				Examples: []string{"aiv workers revoke wrk_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				Run:      audited(workersRevoke),
			},
		},
	}
}

type (
	// A worker as the workers commands print it.
	worker struct {
		ID         string   `json:"id"`
		Name       string   `json:"name"`
		Providers  []string `json:"providers"` // null: all
		CreatedAt  string   `json:"created_at"`
		LastSeenAt *string  `json:"last_seen_at"` // to the minute
		RevokedAt  *string  `json:"revoked_at"`
	}
	// An issuedWorker is what `aiv workers create` prints: the only output that contains a worker's token.
	issuedWorker struct {
		worker
		Token string `json:"token"`
	}
)

func workerOf(w auth.Worker) worker {
	return worker{w.ID.Text("wrk"), w.Name, w.Providers, store.FormatTime(w.CreatedAt), store.FormatTimeOrNil(w.LastSeenAt), store.FormatTimeOrNil(w.RevokedAt)}
}

// workersCreate requires -json without a terminal, so that a token is not written to a log by mistake.
func workersCreate(ctx context.Context, c *call) error {
	name := c.Flags.String("name", "", "the worker's `NAME`")
	var providers []string
	c.ListFlag(&providers, "providers", "the providers whose jobs it may claim, a comma-separated `LIST` of codes (default: all)")
	if _, err := c.Parse("-name"); err != nil {
		return err
	}
	if providers != nil && len(providers) == 0 {
		return c.Wrong("-providers is empty")
	}
	if !c.Terminal && !c.AsJSON() {
		return c.Wrong("the token is a secret; to write it to a pipe or a file, add -json")
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		w, token, err := (&auth.Admin{Pool: pool, Actor: c.actor()}).CreateWorker(ctx, *name, providers)
		if err != nil {
			return err
		}
		service.SurvivePipe() // an error must say that the worker exists
		made := issuedWorker{workerOf(w), token}
		err = c.Print(made, func(out io.Writer) {
			fmt.Fprintf(out, "Worker %s, %q, may claim jobs of %s.\n\n  %s\n\n", made.ID, made.Name, providersOrAll(made.Providers), token)
		})
		if err != nil {
			return fmt.Errorf("worker %s was created, but its token could not be printed; revoke it: %w", made.ID, err)
		}
		fmt.Fprintf(c.Stderr, "The token of %s is shown only this once; store it now.\n", made.ID)
		return nil
	})
}

// providersOrAll formats the providers of a worker for people. A nil list allows all.
func providersOrAll(providers []string) string {
	if providers == nil {
		return "all providers"
	}
	return cli.List(providers)
}

// workersList lists all workers, including revoked ones. Their tokens are not stored.
func workersList(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&auth.Admin{Pool: pool}).Workers(ctx)
		if err != nil {
			return err
		}
		workers, rows := []worker{}, [][]string{{"ID", "NAME", "PROVIDERS", "LAST SEEN", "REVOKED"}}
		for _, f := range found {
			w := workerOf(f)
			workers = append(workers, w)
			rows = append(rows, []string{w.ID, w.Name, providersOrAll(w.Providers), humanTime(f.LastSeenAt, "never"), humanTime(f.RevokedAt, "no")})
		}
		return c.PrintList(workers, rows, "There are no workers; create one with aiv workers create.")
	})
}

// workersRevoke revokes a token. It does not end the leases of the worker: they run out, because it can no longer
// renew them.
func workersRevoke(ctx context.Context, c *call) error {
	id, _, err := c.parseWithID("wrk")
	if err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		revoked, err := (&auth.Admin{Pool: pool, Actor: c.actor()}).RevokeWorker(ctx, id)
		if err != nil {
			return err
		}
		w := workerOf(revoked)
		return c.Print(w, func(out io.Writer) {
			fmt.Fprintf(out, "Worker %s, %q, is revoked. Jobs that it has return to the queue when their leases end.\n", w.ID, w.Name)
		})
	})
}
