package limits_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aiv/auth"
	"aiv/limits"
	"aiv/store/storetest"
)

// TestFaultConcurrentBatches: the batches of three processes share many rows, in random order and over the ends of
// minutes, while an operator changes keys. There is no deadlock or other error, and all windows are exact.
func TestFaultConcurrentBatches(t *testing.T) {
	const keys, callers, limit = 100, 48, 400
	lasting := 250 * time.Millisecond
	if storetest.Long() {
		lasting = 10 * time.Minute
	}
	s := newSite(t)
	var all []key
	for range keys {
		all = append(all, s.key(t, limit))
	}
	processes := []*limits.Limiter{s.process(t), s.process(t), s.process(t)}

	var got outcomes
	stop := time.Now().Add(lasting)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for time.Now().Before(stop) && !t.Failed() {
				i := rand.IntN(keys)
				if c%4 == 0 { // a quarter of the callers have the same key
					i = 0
				}
				a, err := processes[c%len(processes)].Admit(t.Context(), all[i].Hash)
				if err != nil {
					t.Errorf("key %d: %v", i, err)
					return
				}
				got.add(i, a)
			}
		})
	}
	for changes := 0; time.Now().Before(stop); changes++ {
		s.set(t, all[0], auth.Terms{Name: new(fmt.Sprint("change ", changes))})
	}
	wg.Wait()
	got.wantExact(t, limit)
}
