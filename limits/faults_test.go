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
	t.Parallel()
	const keys, callers, limit = 100, 48, 400
	lasting := 250 * time.Millisecond
	if storetest.Long() {
		lasting = 10 * time.Minute
	}
	url := storetest.URL(t)
	pool := open(t, url)
	hashes := make([]auth.Hash, keys)
	var hot auth.Issued
	var admin *auth.Admin
	hashes[0], hot, admin = customer(t, pool, limit)
	for i := range hashes[1:] {
		hashes[i+1], _ = anotherKey(t, admin, hot.AccountID, fmt.Sprint(i), new(limit))
	}
	processes := []*limits.Limiter{process(t, url), process(t, url), process(t, url)}

	var got outcomes
	stop := time.Now().Add(lasting)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for time.Now().Before(stop) && !t.Failed() {
				key := rand.IntN(keys)
				if c%4 == 0 { // a quarter of the callers have the same key
					key = 0
				}
				a, err := processes[c%len(processes)].Admit(t.Context(), hashes[key])
				if err != nil {
					t.Errorf("key %d: %v", key, err)
					return
				}
				got.add(key, a)
			}
		})
	}
	for changes := 0; time.Now().Before(stop); changes++ {
		name := fmt.Sprint("change ", changes)
		if _, err := admin.SetKey(t.Context(), hot.ID, auth.Terms{Name: &name}); err != nil {
			t.Error(err)
			break
		}
	}
	wg.Wait()
	got.wantExact(t, limit)
}
