package delivery

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
	webhookstest.CostsNothing(t, []webhookstest.Case{
		{Name: "due accounts", SQL: dueAccounts, Args: func(*backlog) []any { return []any{10} }},
		{Name: "claim", SQL: claimAccounts + ofUnlocked, Args: func(b *backlog) []any { return []any{b.Accounts(), b.Owner, 45.0} }},
		{Name: "renew", SQL: renewAccounts + ofUnlocked, Args: func(b *backlog) []any { return []any{b.Accounts(), b.Owner, 45.0} }},
		{Name: "endpoints", SQL: readAccounts, Args: func(b *backlog) []any { return []any{b.Accounts(), b.Owner} }},
		{Name: "due from the first", SQL: readDue, Args: func(b *backlog) []any {
			return []any{[]store.ID{b.Account, b.Account}, []store.ID{b.Due, b.Waiting}, []string{"-infinity", "-infinity"}, make([]store.ID, 2), []int{10, 10}}
		}},
		{Name: "due after a position", SQL: readDue, Args: func(b *backlog) []any {
			return []any{b.Accounts(), []store.ID{b.Due}, []time.Time{b.Position}, []store.ID{b.Events[49]}, []int{10}}
		}},
		{Name: "events", SQL: readEvents, Args: func(b *backlog) []any { return []any{b.Tenfold(b.Account), b.Events[:10]} }},
		{Name: "lock", SQL: lockDeliveries, Args: func(b *backlog) []any {
			return []any{b.Tenfold(b.Account), b.Events[:10], b.Tenfold(b.Due), make([]int, 10), make([]int, 10)}
		}},
		{Name: "outcomes", SQL: writeOutcomes, Args: func(b *backlog) []any {
			statuses, zeros, codes := make([]string, 10), make([]int, 10), make([]int, 10)
			for i := range statuses {
				statuses[i], codes[i] = "delivered", 200
			}
			return []any{b.Tenfold(b.Account), b.Events[:10], b.Tenfold(b.Due), zeros, zeros, statuses, codes, make([]string, 10), make([]float64, 10)}
		}},
		{Name: "health", SQL: writeHealth, Args: func(b *backlog) []any {
			return []any{b.Accounts(), []store.ID{b.Due}, []string{"https://due.example/"}, []bool{false}, []bool{false}, failingPeriod.Seconds()}
		}},
		{Name: "release", SQL: releaseAccounts + ofUnlocked, Args: func(b *backlog) []any {
			return []any{b.Accounts(), []int{0}, []time.Time{time.Now()}, b.Owner}
		}},
		{Name: "yield", SQL: yieldAccounts + ofUnlocked, Args: func(b *backlog) []any { return []any{b.Accounts(), b.Owner} }},
	}, nil)
}
