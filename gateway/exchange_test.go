package gateway

import (
	"testing"
	"time"

	"aiv/limits"
)

// TestSecondsLeft: clients that wait so long do not come back before the end of the window. The clock may pass the end
// while it is read.
func TestSecondsLeft(t *testing.T) {
	for left, want := range map[time.Duration]int{-time.Second: 1, 0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60} {
		if got := secondsLeft(&limits.Window{Left: left}); got != want {
			t.Errorf("%v: got %d, want %d", left, got, want)
		}
	}
}
