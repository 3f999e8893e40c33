package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestFaultDispatch kills the dispatcher, PostgreSQL and workers while jobs are worked and brands change. No acknowledged
// settlement is lost, no job is settled by two attempts, and every run is completed. Each run has one event, and each of
// two webhooks gets it at least once, under one id. When it is received, the metrics of the run have its answers, of
// which none is missing and none is counted twice.
func TestFaultDispatch(t *testing.T) {
	t.Parallel()
	runs, kills, crashes, deaths, every := byForm(10, 500), byForm(2, 50), byForm(1, 10), byForm(0, 50), byForm(3, 10)
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL(), 1_000_000)
	serve := startServe(t, c.URL(), "-webhook-allow-private")
	webhooks := []*received{newReceived(t), newReceived(t)}
	for _, r := range webhooks {
		newWebhook(t, serve, key.Key, r.server.URL+"/hook")
	}
	m := newMeasurement(t, serve, key.Key, webhooks[0])
	checked := make(chan error, 1)
	go func() { checked <- m.checkRuns(t.Context(), runs, every) }()
	for n := range runs {
		serve.send(t, 202, "POST", "", key.Key, fmt.Sprint("run-", n), strings.Replace(testRun, `"repetitions":3`, `"repetitions":20`, 1))
	}
	jobs := 40 * runs
	f := newFleet(t, c.URL(), 1, "-webhook-allow-private")
	f.text, f.forgetful = brandText, 0.1
	f.begin(4)
	for n := range kills {
		next := jobs*n/(kills+2) + rand.IntN(20)
		f.until("the next kill", func(settled, _ int) bool { return settled > next })
		if n%(kills/crashes) == 0 {
			crash(t, c)
		}
		f.dispatch[0].Load().kill()
		f.dispatch[0].Store(startDispatch(t, c.URL(), "-webhook-allow-private"))
	}
	pool := open(t, c.URL())
	f.end(pool)
	if n := int(f.deaths.Load()); n < deaths {
		t.Errorf("%d workers were killed, want %d", n, deaths)
	}
	f.check("dispatch", pool)
	if !storetest.Long() { // else what killed processes had taken to deliver is delivered after 45 s
		storetest.Exec(t, pool, `UPDATE webhook_queues SET wake_at = now(), version = version + 1`)
	}
	must(t, <-checked)
	must(t, m.await("/v1/metrics", jobs, true)) // all that waited was recounted
	if n := number(t, pool, `SELECT count(*) FROM events`); n != runs {
		t.Errorf("%d events of %d runs", n, runs)
	}
	for _, r := range webhooks {
		r.underOneID(t, runs)
	}
	t.Logf("%d kills of the dispatcher, %d of PostgreSQL, %d changes of brands", kills, crashes, m.changes)
}
