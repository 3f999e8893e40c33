package e2e

import (
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultDispatch kills the dispatcher, PostgreSQL and workers while jobs are worked. No acknowledged settlement is
// lost, no job is settled by two attempts, and every run is completed.
func TestFaultDispatch(t *testing.T) {
	t.Parallel()
	runs, kills, crashes, deaths := byForm(10, 500), byForm(2, 50), byForm(1, 10), byForm(0, 50)
	c := storetest.NewCluster(t)
	f := newFleet(t, c.URL(), runs, 1)
	f.forgetful = 0.1
	f.begin(4)
	f.killDispatcher(c, kills, crashes)
	pool := open(t, c.URL())
	f.end(pool)
	if n := int(f.deaths.Load()); n < deaths {
		t.Errorf("%d workers were killed, want %d", n, deaths)
	}
	f.check("dispatch", pool)
	t.Logf("dispatch: %d kills of the dispatcher, %d of PostgreSQL", kills, crashes)
}

// TestFaultDispatchFailover: a primary with a synchronous standby is killed while jobs are worked through two
// dispatchers, and the standby promoted. Workers go on through the same dispatchers, and no acknowledged settlement is
// lost.
func TestFaultDispatchFailover(t *testing.T) {
	t.Parallel()
	times, runs := byForm(1, 5), byForm(20, 200)
	var slowest time.Duration
	for range times {
		url, primary, standby := replicated(t)
		f := newFleet(t, url, runs, 2)
		f.forgetful = 0.05
		f.begin(6)
		f.until("a third of the jobs", func(settled, _ int) bool { return settled > f.total/3 })
		primary.Kill()
		_, failed := f.counts()
		f.until("requests fail", func(_, n int) bool { return n > failed })
		if storetest.Long() {
			<-time.After(3 * time.Second) // until the failover is decided
		}
		standby.Exec(t, "postgres", "SELECT pg_promote()")
		promoted := time.Now()
		before, _ := f.counts()
		f.until("jobs are settled again", func(settled, _ int) bool { return settled > before })
		took := time.Since(promoted)
		if slowest = max(slowest, took); storetest.Long() && took > recovery {
			t.Errorf("jobs were settled again after %v, want %v at most", took, recovery)
		}
		pool := open(t, url)
		f.end(pool)
		f.check("failover of jobs", pool)
	}
	t.Logf("failover of jobs: %d times, back %v after the promotion at the latest", times, slowest.Round(time.Millisecond))
}
