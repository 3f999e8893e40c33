package webhooks

import (
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
)

type backlog = webhookstest.Backlog

// TestBacklogCostsNothing: a delivery costs as much where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	webhookstest.CostsNothing(t, true, []webhookstest.Case{
		{Name: "record", SQL: recordEvents, Args: func(b *backlog) []any {
			return recordArgs([]Cause{{b.Account, store.NewID(), RunCompleted, store.NewID(), []byte("{}")}})
		}},
		{Name: "queues of a record", SQL: lockQueues, Args: func(b *backlog) []any { return []any{[]store.ID{b.Account}} }},
		{Name: "event", SQL: getEvent, Args: func(b *backlog) []any { return []any{b.Account, b.Events[0]} }},
		{Name: "tests and resends", SQL: countRequested, Args: func(b *backlog) []any { return []any{b.Account, b.Due, b.Events[0]} }},
		{Name: "list", SQL: listDeliveries + ` WHERE d.account_id = $1 AND d.endpoint_id = $2 ORDER BY d.created_at DESC, d.event_id DESC LIMIT 10`, Args: func(b *backlog) []any { return []any{b.Account, b.Due} }},
		{Name: "resend", SQL: requestDelivery, Args: func(b *backlog) []any { return []any{b.Account, b.Events[0], b.Due} }},
		{Name: "types of pending deliveries", SQL: readPendingTypes, Args: func(b *backlog) []any { return []any{b.Account, b.Due, 10} }},
	})
}

// TestBackgroundCostsNothing is TestBacklogCostsNothing for statements of plain sessions.
func TestBackgroundCostsNothing(t *testing.T) {
	t.Parallel()
	webhookstest.CostsNothing(t, false, []webhookstest.Case{
		{Name: "metrics", SQL: readBacklog, Args: func(*backlog) []any { return []any{10, 50} }},
		{Name: "purge", SQL: deleteEvents, Args: func(*backlog) []any { return []any{time.Now().Add(time.Hour), 10} }},
	})
}
