package events

import (
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
)

// TestBacklogCostsNothing: an event is read at the same cost where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	webhookstest.CostsNothing(t, []webhookstest.Case{
		{Name: "event", SQL: getEvent, Args: func(b *webhookstest.Backlog) []any { return []any{b.Account, b.Events[0]} }},
	}, []webhookstest.Case{
		{Name: "purge", SQL: deleteEvents, Args: func(*webhookstest.Backlog) []any { return []any{time.Now().Add(time.Hour), 10} }},
	})
}
