package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// boundedSettings limit how long a statement waits or runs. Requests rely on them.
var boundedSettings = []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"}

// CheckSession returns an error if the sessions of the pool lack a timeout, as behind a connection pooler that ignores startup
// parameters. Without these timeouts one forgotten lock blocks all requests.
func CheckSession(ctx context.Context, pool *pgxpool.Pool) error {
	var missing []string
	for _, name := range boundedSettings {
		var value string
		if err := pool.QueryRow(ctx, "SHOW "+name).Scan(&value); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if value == "0" && !setToZero(pool, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the database sessions have no %s although aiv sets it when it connects; a connection pooler drops startup parameters: "+
			"use session pooling that passes them on, or set them for the role with ALTER ROLE … SET", strings.Join(missing, " and no "))
	}
	return nil
}

// setToZero reports whether the database URL turns a timeout off.
func setToZero(pool *pgxpool.Pool, name string) bool {
	value := pool.Config().ConnConfig.RuntimeParams[name]
	d, err := time.ParseDuration(value)
	return value == "0" || err == nil && d == 0
}
