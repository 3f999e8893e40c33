package webhooks

import (
	"testing"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
)

// TestPlans: statements that run for each delivery find their rows by index, even when they were planned on empty tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	f := newFixture(t)
	account, endpoint := f.NewAccount(t), store.NewID()
	ids := []store.ID{account}
	for _, test := range []struct {
		sql, index string
		args       []any
	}{
		{lockQueues, "webhook_queues_pkey", []any{ids}},
		{countRequested, "webhook_deliveries_requested", []any{account, endpoint, endpoint}},
	} {
		f.FindsByIndex(t, test.index, test.sql, test.args...)
	}
}

type backlog = webhookstest.Backlog

// TestBacklogCostsNothing: a delivery costs as much where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	backlogs := webhookstest.NewBacklogs(t)
	for _, test := range []struct {
		name, sql string
		args      func(*backlog) []any
	}{
		{"record", recordEvents, func(b *backlog) []any {
			return events.Args([]events.Cause{cause(b.Account, store.NewID(), events.RunCompleted, store.NewID(), []byte("{}"))})
		}},
		{"queues of a record", lockQueues, func(b *backlog) []any { return []any{[]store.ID{b.Account}} }},
		{"tests and resends", countRequested, func(b *backlog) []any { return []any{b.Account, b.Due, b.Events[0]} }},
		{"list", listDeliveries + ` WHERE d.account_id = $1 AND d.endpoint_id = $2 ORDER BY d.created_at DESC, d.event_id DESC LIMIT 10`, func(b *backlog) []any { return []any{b.Account, b.Due} }},
		{"resend", requestDelivery, func(b *backlog) []any { return []any{b.Account, b.Events[0], b.Due} }},
		{"types of pending deliveries", readPendingTypes, func(b *backlog) []any { return []any{b.Account, b.Due, 10} }},
		{"metrics", readBacklog, func(*backlog) []any { return []any{10, 50} }},
	} {
		backlogs.CostNothing(t, test.name, test.sql, test.args)
	}
}
