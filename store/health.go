package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Health reports what keeps PostgreSQL from removing old row versions, and how far it is from having to freeze rows.
// All values are numbers of transaction ids.
type Health struct {
	Sessions             int64 // age of the oldest snapshot of a session, or of a standby's feedback
	ReplicationSlots     int64 // age of the oldest transaction that a slot retains
	PreparedTransactions int64 // age of the oldest prepared transaction
	TransactionIDs       int64 // age of the oldest unfrozen transaction of any database; writes stop at 2,147,483,647 - 3,000,000
}

// ReadHealth reads the health of the pool's server. It reads system views of a few rows.
func ReadHealth(ctx context.Context, pool *pgxpool.Pool) (h Health, err error) {
	err = pool.QueryRow(ctx, selectHealth).Scan(&h.Sessions, &h.ReplicationSlots, &h.PreparedTransactions, &h.TransactionIDs)
	if err != nil {
		return h, fmt.Errorf("read the age of transaction ids: %w", err)
	}
	return h, nil
}

// The session that runs this has a snapshot too, which is excluded.
const selectHealth = `
SELECT
  coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()), 0)::bigint,
  coalesce((SELECT max(greatest(age(xmin), age(catalog_xmin))) FROM pg_replication_slots), 0)::bigint,
  coalesce((SELECT max(age(transaction)) FROM pg_prepared_xacts), 0)::bigint,
  coalesce((SELECT max(age(datfrozenxid)) FROM pg_database), 0)::bigint`
