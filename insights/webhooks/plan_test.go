package webhooks

import (
	"testing"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
)

type backlog = webhookstest.Backlog

// TestBacklogCostsNothing: a delivery costs as much where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	webhookstest.CostsNothing(t, []webhookstest.Case{
		{Name: "record", SQL: recordEvents, Args: func(b *backlog) []any {
			return events.Args([]events.Cause{cause(b.Account, events.RunCompleted)})
		}},
		{Name: "queues of a record", SQL: lockQueues, Args: func(b *backlog) []any { return []any{[]store.ID{b.Account}} }},
		{Name: "tests and resends", SQL: countRequested, Args: func(b *backlog) []any { return []any{b.Account, b.Due, b.Events[0]} }},
		{Name: "list", SQL: listDeliveries + ` WHERE d.account_id = $1 AND d.endpoint_id = $2 ORDER BY d.created_at DESC, d.event_id DESC LIMIT 10`, Args: func(b *backlog) []any { return []any{b.Account, b.Due} }},
		{Name: "resend", SQL: requestDelivery, Args: func(b *backlog) []any { return []any{b.Account, b.Events[0], b.Due} }},
		{Name: "types of pending deliveries", SQL: readPendingTypes, Args: func(b *backlog) []any { return []any{b.Account, b.Due, 10} }},
	}, []webhookstest.Case{
		{Name: "metrics", SQL: readBacklog, Args: func(*backlog) []any { return []any{10, 50} }},
	})
}
