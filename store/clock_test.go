package store_test

import (
	"errors"
	"testing"
	"time"

	"aiv/store"
)

// TestPurgeBefore: rows are old by both clocks, and none is if the clocks are more than a minute apart.
func TestPurgeBefore(t *testing.T) {
	process := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Time{ // of the database's clock
		0:                process.Add(-24 * time.Hour),
		time.Minute:      process.Add(-24 * time.Hour),
		-time.Minute:     process.Add(-24*time.Hour - time.Minute),
		time.Minute + 1:  {},
		-time.Minute - 1: {},
	} {
		got, err := store.PurgeBeforeAt(process, process.Add(ahead), 24*time.Hour)
		equal(t, want, got, "a database clock ", ahead, " ahead")
		if _, skewed := errors.AsType[*store.ClockError](err); skewed != want.IsZero() {
			t.Errorf("a database clock %v ahead: %v", ahead, err)
		}
	}
}
