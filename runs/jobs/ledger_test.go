package jobs

import (
	"testing"
	"time"
)

// TestRetriedJobWaitsLonger: a retried job waits as long as its worker asked for, or 10 s doubled with each attempt up
// to 10 min, ±20 %.
func TestRetriedJobWaitsLonger(t *testing.T) {
	t.Parallel()
	for n, want := range map[int16]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 49: 10 * time.Minute,
	} {
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			d := backoff(n, 0)
			least, most = min(least, d), max(most, d)
		}
		if least < want*8/10 || least > want*9/10 || most > want*12/10 || most < want*11/10 {
			t.Errorf("attempt %d: %v to %v, want %v ±20 %%", n, least, most, want)
		}
	}
	equal(t, time.Second, backoff(3, time.Second), "what was asked for")
}
