package jobs

import (
	"testing"
	"time"
)

// TestRetriedJobWaitsLonger: a retried job waits as long as its worker asked for, or 10 s doubled with each attempt up
// to 10 min, ±20 %.
func TestRetriedJobWaitsLonger(t *testing.T) {
	for n, want := range map[int16]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 49: 10 * time.Minute,
	} {
		for range 100 {
			if d := backoff(n, 0); d < want*8/10 || d > want*12/10 {
				t.Errorf("attempt %d: %v, want %v ±20 %%", n, d, want)
			}
		}
	}
	equal(t, time.Second, backoff(3, time.Second), "what was asked for")
}
