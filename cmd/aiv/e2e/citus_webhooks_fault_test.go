//go:build citus

package e2e

import (
	"fmt"
	"sync"
	"testing"

	"aiv/store/storetest"
)

// TestFaultCitusWebhooks: while a server of a cluster is away, webhooks of accounts on the other are delivered. A
// delivery that ended after the server was lost is recorded when it is back.
func TestFaultCitusWebhooks(t *testing.T) {
	kills := byForm(2, 10)
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 1)
	serve, dispatch := startServe(t, c.url, "-webhook-allow-private"), startDispatch(t, c.url, "-webhook-allow-private")
	logFailures(t, dispatch)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	var hooks [1 + citusWorkers]*received
	for server := 1; server <= citusWorkers; server++ {
		hooks[server] = newReceived(t)
		newWebhook(t, serve, keys[server][0], hooks[server].server.URL)
	}
	hooks[1].mu.Lock() // its requests get no response
	free := sync.OnceFunc(hooks[1].mu.Unlock)
	defer free()
	runs := 0
	var finished [1 + citusWorkers]int // by server
	complete := func(server int) {
		t.Helper()
		runs++
		finished[server]++
		serve.order(t, keys[server][0], fmt.Sprint("run-", runs))
		settleAll(t, w, claimUntil(t, w, 6))
	}
	delivered := func(server int) {
		t.Helper()
		storetest.Eventually(t, "the events are delivered", func() bool { return len(hooks[server].runs()) >= finished[server] })
	}
	complete(1)
	storetest.Eventually(t, "a delivery has begun", func() bool { return hooks[1].begun.Load() > 0 })
	complete(2)
	delivered(2)
	for n := range kills {
		away, other := 1+n%citusWorkers, 1+(n+1)%citusWorkers
		c.kill(t, away)
		free()
		for range 3 {
			complete(other)
			delivered(other)
		}
		c.resume(t, away)
		complete(away)
		delivered(away)
	}
	c.endPrepared(t)
	waitUntil(t, c.url, fmt.Sprintf(`SELECT count(*) = %d FROM webhook_deliveries WHERE status = 'delivered'`, runs))
	if n := number(t, open(t, c.url), `SELECT count(*) FROM events`); n != runs {
		t.Errorf("%d events of %d runs", n, runs)
	}
	again := 0
	for _, h := range hooks[1:] {
		again += h.underOneID(t)
	}
	t.Logf("%d kills of workers: events of %d runs, of which %d were delivered again", kills, runs, again)
	c.settled(t, runs)
}
