package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Backdate moves the results of an account's runs, which were moved into the past (runs.Backdate), to times between the start
// and the end of their run. Only sample data uses it.
func Backdate(ctx context.Context, pool *pgxpool.Pool, account store.ID) error {
	if _, err := pool.Exec(ctx, backdateResults, account); err != nil {
		return fmt.Errorf("backdate results: %w", err)
	}
	return nil
}
