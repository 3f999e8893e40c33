package storetest

import (
	"testing"
	"time"
)

// Patience is how long tests wait for what must happen. It is much longer than that takes on a slow and busy machine.
const Patience = 2 * time.Minute

// Eventually polls until a condition holds. The test fails if it does not within Patience.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not so after %v: %s", Patience, what)
		case <-tick.C:
		}
	}
}
