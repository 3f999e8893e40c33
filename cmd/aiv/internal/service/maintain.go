package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
)

// A chore is work that is repeated.
type chore struct {
	what string
	run  func(context.Context) (rows int64, err error)
}

// firstChores is how long after its start a service begins its chores, so that they do not delay its first requests.
const firstChores = time.Second

// repeat does chores after firstChores, and then at each interval, until ctx is done.
func repeat(ctx context.Context, log *slog.Logger, every time.Duration, chores ...chore) {
	next := time.NewTimer(firstChores)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(every)
		}
		for _, c := range chores {
			rows, err := c.run(ctx)
			if err != nil && ctx.Err() == nil {
				log.Error(c.what, "error", err)
			} else if rows > 0 {
				log.Info(c.what, "rows", rows)
			}
		}
	}
}

// warnOfExpiry warns of the credentials that expire soon.
func warnOfExpiry(pool *pgxpool.Pool, log *slog.Logger) chore {
	const most = 20
	return chore{"looking for keys that expire soon", func(ctx context.Context) (int64, error) {
		expiring, err := auth.ReadExpiring(ctx, pool, ExpirySoon, MaxCounted)
		for i, k := range expiring {
			if i == most {
				log.Warn("more keys expire soon", "keys", len(expiring)-most)
				break
			}
			log.Warn("a key expires soon", "credential", k.ID.Text("cred"), "account", k.AccountID.Text("acct"), "name", k.Name,
				"key_prefix", k.KeyPrefix, "expires_at", k.ExpiresAt.UTC())
		}
		return 0, err
	}}
}
