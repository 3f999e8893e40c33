package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// recordOnCitus is recordEvents on Citus. Each statement concerns only the servers of the accounts in its parameters.
func recordOnCitus(ctx context.Context, tx store.Tx, causes []events.Cause) error {
	var accounts []store.ID
	for _, c := range causes {
		accounts = append(accounts, c.AccountID)
	}
	// One account at a time, so that all transactions lock the queues in one order.
	var locks pgx.Batch
	for _, account := range distinct(accounts) {
		locks.Queue(citusLockQueue, account)
	}
	if err := tx.SendBatch(ctx, &locks).Close(); err != nil {
		return err
	}
	// added leaves out events that were recorded before, so they are not delivered again.
	added, err := events.AddOnCitus(ctx, tx, causes)
	if err != nil || len(added) == 0 {
		return err
	}
	accounts = nil
	for _, e := range added {
		accounts = append(accounts, e.AccountID)
	}
	type endpoint struct {
		Account, ID store.ID
		Events      []string
	}
	endpoints, err := store.Collect(ctx, tx, pgx.RowToStructByPos[endpoint], citusEndpoints, accounts)
	if err != nil {
		return err
	}
	ofAccount := make(map[store.ID][]endpoint)
	for _, e := range endpoints {
		ofAccount[e.Account] = append(ofAccount[e.Account], e)
	}
	// The columns of the new deliveries: account, event, endpoint, and time.
	var owners, ids, to []store.ID
	var at []time.Time
	for _, v := range added {
		for _, e := range ofAccount[v.AccountID] {
			if slices.Contains(e.Events, v.Type) || slices.Contains(e.Events, All) {
				owners, ids, to, at = append(owners, v.AccountID), append(ids, v.ID), append(to, e.ID), append(at, v.CreatedAt)
			}
		}
	}
	if len(owners) == 0 {
		return nil
	}
	var b pgx.Batch
	b.Queue(citusAddDeliveries, owners, ids, to, at)
	b.Queue(citusWakeQueues, distinct(owners))
	return tx.SendBatch(ctx, &b).Close()
}

// distinct returns ids in order, each once.
func distinct(ids []store.ID) []store.ID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), store.ID.Compare))
}
