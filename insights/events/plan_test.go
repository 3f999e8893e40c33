package events

import (
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
)

// TestPlans: a purge finds events by index, even when it was planned on empty tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	db := webhookstest.New(t)
	for _, index := range []string{"events_time", "events_pkey"} {
		db.FindsByIndex(t, index, deleteEvents, time.Now(), 10)
	}
}

// TestBacklogCostsNothing: an event is read and purged at the same cost where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	backlogs := webhookstest.NewBacklogs(t)
	backlogs.CostNothing(t, "event", getEvent, func(b *webhookstest.Backlog) []any { return []any{b.Account, b.Events[0]} })
	backlogs.CostNothing(t, "purge", deleteEvents, func(*webhookstest.Backlog) []any { return []any{time.Now().Add(time.Hour), 10} })
}
