package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/runs"
)

// TestUsageDocument: a month is that of UTC in any time zone of the process, and a quota that was lowered leaves
// nothing.
func TestUsageDocument(t *testing.T) {
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).In(time.FixedZone("", -3600))
	got := newUsageDocument(runs.MonthlyUsage{Month: month, Runs: 2, Jobs: 10, Completed: 4, Failed: 3, Canceled: 1}, new(int64(9)))
	want := usageDocument{Month: "2026-11", Runs: 2, Jobs: usageJobs{10, 4, 3, 1}, Quota: usageQuota{new(int64(9)), new(int64(0))}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
