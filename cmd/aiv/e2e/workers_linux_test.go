package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestFaultWorkers: 1,000 claims wait, while workers settle 500 jobs in requests of 8 MiB, send slowly, read nothing,
// or vanish. Waiting claims take no connection to the database, memory stays bounded, and another worker's claims and
// settlements succeed. It is not parallel, because it measures the process.
func TestFaultWorkers(t *testing.T) {
	lasting := byForm(time.Duration(0), time.Minute)
	url, pool, _, key := databaseOfCustomer(t)
	importBulk(t, pool)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	order := func(model, questions string, repetitions int) {
		body := strings.NewReplacer(`"m"`, model, `"q1","q2"`, questions, `"repetitions":3`, fmt.Sprintf(`"repetitions":%d`, repetitions)).Replace(testRun)
		if a, err := serve.do(t.Context(), "POST", "", key.Key, fmt.Sprint("order-", rand.Int64()), body); err != nil || a.status != 202 {
			t.Errorf("creating a run: %v %v", a, err)
		}
	}
	c := newCrowd(t, dispatch, newWorker(t, url).Token)

	waiting := crowdOf(1000)
	for range waiting {
		c.repeat(&c.waits, c.waitForJobs)
	}
	dispatch.awaitClaims(t, waiting)
	// Tasks in the background use connections now and then, perhaps several at once. A claim that needed one while it
	// waits would use it all the time.
	connections := waiting
	for range 50 {
		<-time.After(10 * time.Millisecond)
		connections = min(connections, number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'aiv' AND state <> 'idle' AND pid <> pg_backend_pid()`))
	}
	if connections > 3 {
		t.Errorf("while %d claims wait, never fewer than %d connections to the database are in use", waiting, connections)
	}

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
		c.repeat(&c.loads, c.settleMuch)
	}
	for range crowdOf(30) {
		c.repeat(&c.loads, c.vanish)
	}
	for range crowdOf(60) {
		c.repeat(&c.loads, c.sendSlowly)
		c.repeat(&c.loads, c.readNothing)
	}
	c.repeat(&c.loads, func() { // wakes all waiting claims
		order(`"mw"`, `"q1"`, 1)
		<-time.After(200 * time.Millisecond)
	})
	c.repeat(&c.loads, func() { // the other worker has jobs all the time
		c.pause(5 * time.Second)
		order(`"m"`, questions, 20)
	})
	worked, longest := c.workOn(lasting)
	wait(t, "large settlements, and waiting claims that get jobs", "true", func() string {
		return fmt.Sprint(c.largest.Load() > 0 && c.woken.Load() > 0)
	})
	close(c.stopLoads)
	c.loads.Wait()
	memory := dispatch.memory(t)
	if memory > memoryBound() {
		t.Errorf("the process used %d MiB of memory", memory>>20)
	}
	t.Logf("while %d claims waited, %d connections to the database were in use; another worker settled %d jobs, each within %v", waiting, connections, worked, longest)
	t.Logf("%d settlements of 8 MiB, %d refused; %d waiting claims got jobs; memory %d MiB", c.largest.Load(), c.refused.Load(), c.woken.Load(), memory>>20)
	close(c.stopWaits)
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
