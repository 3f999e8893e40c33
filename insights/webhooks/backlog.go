package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Backlog describes the pending deliveries of all accounts.
type Backlog struct {
	Pending int           // counted up to a maximum; also of disabled endpoints, and waiting for a retry
	Lag     time.Duration // how long the oldest due delivery to an enabled endpoint has been due
}

// ReadBacklog reads the backlog. Its cost does not grow with the number of deliveries: it counts up to most.
func ReadBacklog(ctx context.Context, pool *pgxpool.Pool, most int) (b Backlog, err error) {
	const accounts = 200
	var seconds float64
	err = pool.QueryRow(ctx, readBacklog, store.OnCitus(citusBacklog), accounts, most).Scan(&b.Pending, &seconds)
	b.Lag = max(0, time.Duration(seconds*float64(time.Second)))
	return b, err
}
