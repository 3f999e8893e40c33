package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Cause is an event to record.
type Cause struct {
	AccountID store.ID
	ID        store.ID // of the event
	Type      string   // not Test
	SubjectID store.ID // the run, the alert or the recommendation
	Data      []byte   // a JSON object, as the API returns the subject
}

// Record writes events and queues their deliveries to the endpoints that are enabled and subscribe to them. It does so in
// the caller's transaction, which is the one that makes the events true, and in one statement for all events.
//
// A second final event of a run is ignored. For alerts and recommendations, the caller ensures that each change of status is
// recorded once.
//
// Record locks the queues of the accounts until the transaction ends, so it comes after the transaction's other statements.
// Several calls in one transaction must have accounts in ascending order. Record locks the queues before it reads
// subscriptions. A transaction that locks an account's queue therefore either sees the deliveries that Record added, or has
// its changes seen by Record.
func Record(ctx context.Context, tx store.Tx, causes []Cause) error {
	if len(causes) == 0 {
		return nil
	}
	args := recordArgs(causes)
	var err error
	if store.IsCitus(tx.Conn()) {
		err = recordOnCitus(ctx, tx, args)
	} else {
		var b pgx.Batch
		b.Queue(lockQueues, args[0])
		b.Queue(recordEvents, args...)
		err = tx.SendBatch(ctx, &b).Close()
	}
	if err != nil {
		return fmt.Errorf("recording %d events: %w", len(causes), err)
	}
	return nil
}

// recordArgs returns the arguments of recordEvents.
func recordArgs(causes []Cause) []any {
	n := len(causes)
	accounts, ids, subjects := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	types, data := make([]string, n), make([]string, n)
	for i, c := range causes {
		accounts[i], ids[i], types[i], subjects[i], data[i] = c.AccountID, c.ID, c.Type, c.SubjectID, string(c.Data)
	}
	return []any{accounts, ids, types, subjects, data}
}
