package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// Record is an [events.Recorder]: it writes events and queues their deliveries to the endpoints that are enabled and
// subscribe to them, in one statement for all events.
//
// Record locks the queues of the accounts until the transaction ends. It locks them before it reads subscriptions. A
// transaction that locks an account's queue therefore either sees the deliveries that Record added, or has its changes
// seen by Record.
func Record(ctx context.Context, tx store.Tx, causes []events.Cause) error {
	if len(causes) == 0 {
		return nil
	}
	var err error
	if store.IsCitus(tx.Conn()) {
		err = recordOnCitus(ctx, tx, causes)
	} else {
		args := events.Args(causes)
		var b pgx.Batch
		// args[0] are the accounts of the causes.
		b.Queue(lockQueues, args[0])
		b.Queue(recordEvents, args...)
		err = tx.SendBatch(ctx, &b).Close()
	}
	if err != nil {
		return fmt.Errorf("recording %d events: %w", len(causes), err)
	}
	return nil
}
