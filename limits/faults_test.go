package limits_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/auth"
	"aiv/limits"
	"aiv/store/storetest"
)

// tally sums the outcomes of one key in one window. An exact window that admitted n requests returned each of limit-1 …
// limit-n once as what remains.
type tally struct{ admitted, refused, remaining int }

func (a *tally) add(b tally) {
	a.admitted += b.admitted
	a.refused += b.refused
	a.remaining += b.remaining
}

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

	type window struct {
		key int
		end int64
	}
	counted := make([]map[window]tally, callers)
	var requests atomic.Int64
	stop := time.Now().Add(lasting)
	var wg sync.WaitGroup
	for c := range callers {
		counted[c] = make(map[window]tally)
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
				requests.Add(1)
				w := window{key, a.Window.End.Unix()}
				one := tally{refused: 1}
				if a.Admitted {
					one = tally{admitted: 1, remaining: a.Window.Remaining}
				}
				one.add(counted[c][w])
				counted[c][w] = one
			}
		})
	}
	changes := 0
	for ; time.Now().Before(stop); changes++ {
		name := fmt.Sprint("change ", changes)
		if _, err := admin.SetKey(t.Context(), hot.ID, auth.Terms{Name: &name}); err != nil {
			t.Error(err)
			break
		}
	}
	wg.Wait()

	all, ends := make(map[window]tally), make(map[int64]bool)
	for _, m := range counted {
		for w, one := range m {
			one.add(all[w])
			all[w] = one
			ends[w.end] = true
		}
	}
	for w, a := range all {
		if a.admitted > limit || a.refused > 0 && a.admitted < limit {
			t.Errorf("key %d admitted %d and refused %d until %d", w.key, a.admitted, a.refused, w.end)
		}
		if want := a.admitted*limit - a.admitted*(a.admitted+1)/2; a.remaining != want {
			t.Errorf("key %d: the sum of what remained is %d after %d requests, want %d", w.key, a.remaining, a.admitted, want)
		}
	}
	t.Logf("%d requests in %d minutes of %d keys, %d changes by an operator", requests.Load(), len(ends), keys, changes)
}
