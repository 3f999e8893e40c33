package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/storetest"
)

// TestFaultWorkers: 1,000 claims wait, or 200 in the short form, while workers settle 500 jobs in requests of 8 MiB, send
// slowly, read nothing, or vanish. Waiting claims take no connection to the database, memory stays bounded, and another
// worker's claims and settlements succeed. It is not parallel, because it measures the process.
func TestFaultWorkers(t *testing.T) {
	lasting := byForm(time.Duration(0), time.Minute)
	url, pool, _, key := databaseOfCustomer(t)
	importBulk(t, pool)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	order := func(model, questions string, repetitions int) {
		body := strings.NewReplacer(`"m"`, model, `"q1","q2"`, questions, `"repetitions":3`, fmt.Sprintf(`"repetitions":%d`, repetitions)).Replace(testRun)
		name := fmt.Sprint("order-", rand.Int64())
		a, err := patiently(func() (answer, error) { return serve.do(t.Context(), "POST", "", key.Key, name, body) })
		if err != nil || a.status != 202 {
			t.Errorf("creating a run: %v %v", a, err)
		}
	}
	c := newCrowd(t, dispatch, newWorker(t, url).Token)

	waiting := crowdOf(byForm(200, 1000))
	for range waiting {
		c.waits.repeat(c.waitForJobs)
	}
	storetest.Eventually(t, "nine of ten claims wait", func() bool { // the others are between two waits
		return readExposition(t, dispatch.metrics(t)).values["aiv_claims_waiting"] >= float64(waiting)*0.9
	})
	// Tasks in the background use connections now and then, perhaps several at once. A claim that needed one while it
	// waits would use it all the time.
	wait(t, "connections to the database in use while claims wait", "^[0-3]$", func() string {
		return fmt.Sprint(number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'aiv' AND state <> 'idle' AND pid <> pg_backend_pid()`))
	})

	var all []string
	for n := range 100 {
		all = append(all, fmt.Sprintf(`"s%d"`, n))
	}
	questions := strings.Join(all, ",")
	for range byForm(4, 8) { // 2,000 jobs each
		order(`"ms"`, questions, 20)
		order(`"m"`, questions, 20)
	}
	for range crowdOf(8) {
		c.loads.repeat(c.settleMuch)
	}
	for range crowdOf(30) {
		c.loads.repeat(c.vanish)
	}
	for range crowdOf(60) {
		c.loads.repeat(c.sendSlowly)
		c.loads.repeat(c.readNothing)
	}
	c.loads.repeat(func() { // wakes all waiting claims
		order(`"mw"`, `"q1"`, 1)
		<-time.After(200 * time.Millisecond)
	})
	c.loads.repeat(func() { // the other worker has jobs all the time
		c.pause(5 * time.Second)
		order(`"m"`, questions, 20)
	})
	worked, longest := c.workOn(lasting)
	storetest.Eventually(t, "waiting claims get jobs", func() bool { return c.woken.Load() > 0 })
	if storetest.Long() {
		storetest.Eventually(t, "a settlement of 8 MiB succeeds", func() bool { return c.largest.Load() > 0 })
	}
	close(c.loads.ended)
	c.loads.Wait()
	// On a slow machine each of them may have taken too long beside the others. One alone succeeds.
	storetest.Eventually(t, "a settlement of 8 MiB succeeds alone", func() bool {
		if c.largest.Load() == 0 {
			c.settleMuch()
		}
		return c.largest.Load() > 0
	})
	memory := dispatch.memory(t, memoryBound())
	t.Logf("while %d claims waited, another worker settled %d jobs, each within %v", waiting, worked, longest)
	t.Logf("%d settlements of 8 MiB, %d refused; %d waiting claims got jobs; memory %d MiB",
		c.largest.Load(), c.refused.Load(), c.woken.Load(), memory)
	close(c.waits.ended)
	dispatch.kill() // SIGTERM would let idle connections and waiting claims end first
	c.waits.Wait()
}

// crowdOf returns how many clients of a kind there are: with the race detector, which makes the process several times
// slower, a fifth.
func crowdOf(n int) int {
	if raceEnabled {
		return max(1, n/5)
	}
	return n
}

// importBulk adds to testCatalog 100 long questions, and the models ms and mw of the providers s and w.
func importBulk(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var b strings.Builder
	for _, p := range []string{"s", "w"} {
		fmt.Fprintf(&b, `{"kind":"provider","code":%q,"name":"P"}`+"\n", p)
		fmt.Fprintf(&b, `{"kind":"model","id":"m%s","name":"M","provider":%[1]q,"provider_model":"m","status":"active","measurement_types":["grounded"],"countries":null,"languages":null,"grounded_search":true}`+"\n", p)
	}
	for n := range 100 {
		fmt.Fprintf(&b, `{"kind":"question","id":"s%d","account_id":null,"text":"%s","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}`+"\n",
			n, strings.Repeat("long ", 400))
	}
	importCatalog(t, pool, b.String(), "s", "w")
}
