package store_test

import (
	"errors"
	"testing"
	"time"

	"aiv/store"
)

func TestPurgeBefore(t *testing.T) {
	process := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		ahead time.Duration // of the database's clock
		want  time.Time
	}{
		{0, process.Add(-24 * time.Hour)},
		{time.Minute, process.Add(-24 * time.Hour)},
		{-time.Minute, process.Add(-24*time.Hour - time.Minute)},
		{time.Minute + 1, time.Time{}},
		{-time.Minute - 1, time.Time{}},
	} {
		got, err := store.PurgeBeforeAt(process, process.Add(test.ahead), 24*time.Hour)
		_, skewed := errors.AsType[*store.ClockError](err)
		if !got.Equal(test.want) || skewed != test.want.IsZero() {
			t.Errorf("a database clock %v ahead: got %v, %v, want %v", test.ahead, got, err, test.want)
		}
	}
}
