package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

const (
	purgeStep    = 500 // rows that one transaction deletes
	endpointStep = 100 // deleted endpoints that one statement reads
)

// Purge deletes events older than an age with their deliveries, and the deliveries of deleted endpoints, in small steps.
// It returns how many events it deleted. It deletes nothing and returns a *store.ClockError if the clocks of the process and
// the database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool, age time.Duration) (events int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, age)
	if err != nil {
		return 0, err
	}
	for {
		n, err := purgeEvents(ctx, pool, before)
		events += n
		if err != nil {
			return events, err
		}
		if n == 0 {
			break
		}
	}
	if _, err := pool.Exec(ctx, deleteHosts); err != nil {
		return events, err
	}
	return events, purgeEndpoints(ctx, pool)
}

func purgeEvents(ctx context.Context, pool *pgxpool.Pool, before time.Time) (int64, error) {
	type key struct{ Account, ID store.ID }
	rows, err := pool.Query(ctx, oldEvents, before, purgeStep)
	if err != nil {
		return 0, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := a.Account.Compare(b.Account); c != 0 {
			return c
		}
		return a.ID.Compare(b.ID)
	})
	accounts, ids := make([]store.ID, len(keys)), make([]store.ID, len(keys))
	for i, k := range keys {
		accounts[i], ids[i] = k.Account, k.ID
	}
	tag, err := pool.Exec(ctx, deleteEvents, store.OnCitus(citusDeleteEvents), accounts, ids)
	return tag.RowsAffected(), err
}

// A deletedEndpoint is an endpoint whose row is still there. Old: it was deleted more than an hour ago.
type deletedEndpoint struct {
	Account, ID store.ID
	DeletedAt   time.Time
	Old         bool
}

// purgeEndpoints deletes the deliveries of all deleted endpoints, and the old endpoints themselves. Those that are not old stay,
// because a transaction that began before their deletion may still queue deliveries to them.
func purgeEndpoints(ctx context.Context, pool *pgxpool.Pool) error {
	last := deletedEndpoint{}
	for {
		rows, err := pool.Query(ctx, deletedEndpoints, last.DeletedAt, last.ID, endpointStep)
		if err != nil {
			return err
		}
		endpoints, err := pgx.CollectRows(rows, pgx.RowToStructByPos[deletedEndpoint])
		if err != nil || len(endpoints) == 0 {
			return err
		}
		for _, e := range endpoints {
			if err := purgeEndpoint(ctx, pool, e); err != nil {
				return err
			}
		}
		last = endpoints[len(endpoints)-1]
	}
}

func purgeEndpoint(ctx context.Context, pool *pgxpool.Pool, e deletedEndpoint) error {
	for {
		rows, err := pool.Query(ctx, deliveriesOfEndpoint, e.Account, e.ID, purgeStep)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[store.ID])
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			break
		}
		if _, err := pool.Exec(ctx, deleteDeliveries, e.Account, e.ID, ids); err != nil {
			return err
		}
	}
	if !e.Old {
		return nil
	}
	_, err := pool.Exec(ctx, removeEndpoint, e.Account, e.ID)
	return err
}

// EraseEvents hides an account's endpoints, so that they get no new deliveries, and deletes its events with their deliveries in
// small steps. It returns how many events it deleted.
func EraseEvents(ctx context.Context, pool *pgxpool.Pool, account store.ID) (total int64, err error) {
	err = store.Step(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, hideEndpoints, account)
		return err
	})
	if err != nil {
		return 0, err
	}
	for n := int64(purgeStep); n == purgeStep; total += n {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, eraseEvents, account, purgeStep)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// EraseEndpoints deletes the rows of an account's endpoints, which EraseEvents has hidden, and its queue. Transactions that
// began before EraseEvents must have ended, because they may add deliveries.
func EraseEndpoints(ctx context.Context, pool *pgxpool.Pool, account store.ID) error {
	return store.Step(ctx, pool, func(tx pgx.Tx) error {
		for _, statement := range []string{eraseQueue, eraseEndpoints} {
			if _, err := tx.Exec(ctx, statement, account); err != nil {
				return err
			}
		}
		return nil
	})
}
