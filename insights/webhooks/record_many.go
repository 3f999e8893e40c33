package webhooks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/store"
)

// A subscriber is an enabled endpoint. Its UpdatedAt shows whether it has changed since it was read.
type subscriber struct {
	Account, ID store.ID
	UpdatedAt   time.Time
}

var errSubscribersChanged = errors.New("the endpoints have changed")

// RecordMany records events of accounts as Record does, in a statement for each element of all. It locks the queues of
// the accounts only after that, because requests wait for them: to cancel or settle a run is to record an event. If
// endpoints have changed since it began, it starts again, with locked queues. So all may be read twice.
func RecordMany(ctx context.Context, tx pgx.Tx, accounts []store.ID, all iter.Seq[[]events.Cause]) error {
	if store.IsCitus(tx.Conn()) {
		return recordEach(ctx, tx, all)
	}
	// Begin makes a savepoint, so that the events of the first try are undone if endpoints have changed.
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return recordThenLock(ctx, tx, accounts, all) })
	if errors.Is(err, errSubscribersChanged) {
		return recordEach(ctx, tx, all)
	}
	return err
}

// recordEach locks the queues before it writes the first event.
func recordEach(ctx context.Context, tx pgx.Tx, all iter.Seq[[]events.Cause]) error {
	for causes := range all {
		if err := Record(ctx, tx, causes); err != nil {
			return err
		}
	}
	return nil
}

// recordThenLock fails if the endpoints after it has locked the queues are not those for which it has added deliveries.
func recordThenLock(ctx context.Context, tx pgx.Tx, accounts []store.ID, all iter.Seq[[]events.Cause]) error {
	// Nothing is locked yet, so endpoints may change before the deliveries are added. The second read finds that out.
	before, err := readSubscribers(ctx, tx, accounts)
	if err != nil {
		return err
	}
	for causes := range all {
		if _, err := tx.Exec(ctx, recordWithoutQueues, events.Args(causes)...); err != nil {
			return fmt.Errorf("recording %d events: %w", len(causes), err)
		}
	}
	if _, err := tx.Exec(ctx, lockQueues, accounts); err != nil {
		return err
	}
	after, err := readSubscribers(ctx, tx, accounts)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(before, after, func(a, b subscriber) bool {
		return a.Account == b.Account && a.ID == b.ID && a.UpdatedAt.Equal(b.UpdatedAt)
	}) {
		return errSubscribersChanged
	}
	// Only accounts with endpoints have deliveries to wake for.
	owners := make([]store.ID, len(after))
	for i, s := range after {
		owners[i] = s.Account
	}
	_, err = tx.Exec(ctx, wakeLocked, distinct(owners))
	return err
}

// readSubscribers returns the enabled endpoints of accounts, in order.
func readSubscribers(ctx context.Context, tx pgx.Tx, accounts []store.ID) ([]subscriber, error) {
	return store.Collect(ctx, tx, pgx.RowToStructByPos[subscriber], subscribed, accounts)
}
