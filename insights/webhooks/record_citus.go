package webhooks

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// recordOnCitus is recordEvents on Citus. Each statement concerns only the servers of the accounts in its parameters.
func recordOnCitus(ctx context.Context, tx store.Tx, args []any) error {
	type added struct{ Account, ID store.ID }
	// One account at a time, so that all transactions lock the queues in one order.
	var locks pgx.Batch
	for _, account := range distinct(args[0].([]store.ID)) {
		locks.Queue(citusLockQueue, account)
	}
	if err := tx.SendBatch(ctx, &locks).Close(); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, citusAddEvents, args...)
	if err != nil {
		return err
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[added])
	if err != nil || len(events) == 0 {
		return err
	}
	var accounts, ids []store.ID
	for _, e := range events {
		accounts, ids = append(accounts, e.Account), append(ids, e.ID)
	}
	rows, err = tx.Query(ctx, citusAddDeliveries, accounts, ids)
	if err != nil {
		return err
	}
	owners, err := pgx.CollectRows(rows, pgx.RowTo[store.ID])
	if err != nil || len(owners) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, citusWakeQueues, distinct(owners))
	return err
}

// distinct returns ids in order, each once.
func distinct(ids []store.ID) []store.ID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), store.ID.Compare))
}
