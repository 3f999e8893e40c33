package delivery

import (
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
)

// TestPlans: statements that run for each delivery find their rows by index, even when they were planned on empty tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	f := newFixture(t)
	account := f.NewAccount(t)
	ids := []store.ID{account}
	for _, test := range []struct {
		sql, index string
		args       []any
	}{
		{dueAccounts, "webhook_queues_wake", []any{10}},
		{claimAccounts + ofUnlocked, "webhook_queues_pkey", []any{ids, account, 1.0}},
		{readDue, "webhook_deliveries_due", []any{ids, ids, []string{"-infinity"}, ids, []int{5}}},
		{readEvents, "events_pkey", []any{ids, ids}},
		{lockDeliveries, "webhook_deliveries_pkey", []any{ids, ids, ids, []int{0}, []int{0}}},
		{writeOutcomes, "webhook_deliveries_pkey", []any{ids, ids, ids, []int{0}, []int{0}, []string{"failed"}, []int{500}, []string{"status"}, []float64{1}}},
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
		{"due accounts", dueAccounts, func(*backlog) []any { return []any{10} }},
		{"claim", claimAccounts + ofUnlocked, func(b *backlog) []any { return []any{b.Accounts(), b.Owner, 45.0} }},
		{"renew", renewAccounts + ofUnlocked, func(b *backlog) []any { return []any{b.Accounts(), b.Owner, 45.0} }},
		{"endpoints", readAccounts, func(b *backlog) []any { return []any{b.Accounts(), b.Owner} }},
		{"due from the first", readDue, func(b *backlog) []any {
			return []any{[]store.ID{b.Account, b.Account}, []store.ID{b.Due, b.Waiting}, []string{"-infinity", "-infinity"}, make([]store.ID, 2), []int{10, 10}}
		}},
		{"due after a position", readDue, func(b *backlog) []any {
			return []any{b.Accounts(), []store.ID{b.Due}, []time.Time{b.Position}, []store.ID{b.Events[49]}, []int{10}}
		}},
		{"events", readEvents, func(b *backlog) []any { return []any{b.Tenfold(b.Account), b.Events[:10]} }},
		{"lock", lockDeliveries, func(b *backlog) []any {
			return []any{b.Tenfold(b.Account), b.Events[:10], b.Tenfold(b.Due), make([]int, 10), make([]int, 10)}
		}},
		{"outcomes", writeOutcomes, func(b *backlog) []any {
			statuses, zeros, codes := make([]string, 10), make([]int, 10), make([]int, 10)
			for i := range statuses {
				statuses[i], codes[i] = "delivered", 200
			}
			return []any{b.Tenfold(b.Account), b.Events[:10], b.Tenfold(b.Due), zeros, zeros, statuses, codes, make([]string, 10), make([]float64, 10)}
		}},
		{"health", writeHealth, func(b *backlog) []any {
			return []any{b.Accounts(), []store.ID{b.Due}, []string{"https://due.example/"}, []bool{false}, []bool{false}, failingPeriod.Seconds()}
		}},
		{"release", releaseAccounts + ofUnlocked, func(b *backlog) []any {
			return []any{b.Accounts(), []int{0}, []time.Time{time.Now()}, b.Owner}
		}},
		{"yield", yieldAccounts + ofUnlocked, func(b *backlog) []any { return []any{b.Accounts(), b.Owner} }},
	} {
		backlogs.CostNothing(t, test.name, test.sql, test.args)
	}
}
