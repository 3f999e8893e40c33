package e2e

import (
	"math/rand/v2"
	"testing"

	"aiv/store/storetest"
)

// TestFaultGatewayCrash: one of two processes is killed after a random number of responses, again and again, while
// clients create runs of two accounts, one of which has a quota. Kills that cut off no request do not count.
func TestFaultGatewayCrash(t *testing.T) {
	t.Parallel()
	clients, kills := byForm(12, 16), byForm(2, 50)
	url := storetest.NewCluster(t).URL()
	l := newLoad(t, url, 2)
	account := cli[struct{ ID string }](t, url, "accounts", "create", "-name", "metered", "-plan", "test").ID
	cli[any](t, url, "accounts", "set-quota", account, "-jobs-per-month", "10000000")
	l.others = []string{newKey(t, url, account, 1_000_000).Key}
	l.pause = 0 // so that each kill cuts off requests
	l.begin(clients)
	for k, hit := 0, 0; hit < kills; k++ {
		if k == 10*kills {
			t.Fatalf("of %d kills only %d cut off a request", k, hit)
		}
		l.acknowledged(1 + rand.IntN(100))
		serves := [...]*process{l.process(0), l.process(1)}
		before := l.cut.Load()
		serves[k%2].kill()
		serves[k%2] = startServe(t, url)
		both := serves[:]
		l.serves.Store(&both)
		if l.cut.Load() > before {
			hit++
		}
	}
	l.end()
	l.check("kill -9 of a gateway")
}
