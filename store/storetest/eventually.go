package storetest

import (
	"testing"
	"time"
)

// patience is much longer than what a test waits for takes on a slow and busy machine.
const patience = 2 * time.Minute

// Eventually polls until a condition holds. The test fails if it does not within two minutes.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not so after %v: %s", patience, what)
		case <-tick.C:
		}
	}
}
