package webhooks

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// TestPlans: statements that run for each delivery find their rows by index, also when they were planned on empty tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account, endpoint := f.account(t), store.NewID()
	ids := []store.ID{account}
	for _, test := range []struct {
		sql, index string
		args       []any
	}{
		{dueAccounts, "webhook_queues_wake", []any{10}},
		{claimAccounts, "webhook_queues_pkey", []any{ids, account, 1.0}},
		{readDue, "webhook_deliveries_due", []any{ids, ids, []string{"-infinity"}, ids, []int{5}}},
		{readEvents, "events_pkey", []any{ids, ids}},
		{writeOutcomes, "webhook_deliveries_pkey", []any{ids, ids, ids, []int{0}, []int{0}, []string{"failed"}, []int{500}, []string{"status"}, []float64{1}}},
		{oldEvents, "events_time", []any{time.Now(), 10}},
		{deleteEvents, "events_pkey", []any{ids, ids}},
		{countRequested, "webhook_deliveries_requested", []any{account, endpoint, endpoint}},
	} {
		rows, err := f.pool.Query(t.Context(), "EXPLAIN "+test.sql, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", test.sql, err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\nis planned without %s:\n%s", test.sql, test.index, plan)
		}
	}
}
