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

func showStatus(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	s := status.Status{Database: status.Database{Location: c.source.Location()}}
	problem := c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error {
		notReady, err := s.Read(ctx, pool)
		return cmp.Or(err, c.source.In(notReady))
	})
	if ctx.Err() != nil {
		return problem
	}
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
