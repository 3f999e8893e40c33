package storetest

import (
	"testing"
	"time"
)

// Eventually polls until a condition holds. The test fails if it does not within 30 s.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not so after 30 s: %s", what)
		case <-tick.C:
		}
	}
}
