package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/status"
	"aiv/store"
)

// showStatus prints what could be read even if the database is not usable, and fails then: the report is on stdout,
// the problem on stderr and in the JSON.
func showStatus(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	s := status.Status{Database: status.Database{Location: c.source.Location()}}
	problem := c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error {
		notReady, err := s.Read(ctx, pool)
		return cmp.Or(err, c.source.In(notReady))
	})
	// After an interruption the state is not known, so none is printed.
	if ctx.Err() != nil {
		return problem
	}
	// A database with another encoding is refused after it was reached.
	if _, reached := errors.AsType[*store.EncodingError](problem); reached {
		s.Database.Reachable = true
	}
	if s.Ready = problem == nil; !s.Ready {
		s.Problem = new(redact(problem.Error()))
	}
	if err := c.Print(s, s.Write); err != nil {
		return err
	}
	if !s.Ready {
		return fmt.Errorf("not ready: %w", problem)
	}
	return nil
}
