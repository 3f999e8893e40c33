package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// reads returns how many reads of lists and results a process has sent to the standby and to the primary.
func (p *process) reads(t *testing.T) (standby, primary float64) {
	t.Helper()
	values := samples(t, p.metrics(t))
	return values[`aiv_reads_total{server="standby"}`], values[`aiv_reads_total{server="primary"}`]
}

// awaitStandby waits until reads use the standby, or until they do not.
func (p *process) awaitStandby(t *testing.T, want bool) {
	t.Helper()
	p.hasMetrics(t, map[bool]string{true: "aiv_standby_current 1", false: "aiv_standby_current 0"}[want])
}

// lists fails the test unless the process lists the run with the status.
func (p *process) lists(t *testing.T, key, run, status string) {
	t.Helper()
	a := p.getOnce(t, "?path=/v1/runs&limit=1", key)
	if a.status != 200 || !strings.Contains(a.body, run) || member(t, a.body, "status") != status {
		t.Errorf("got %d %s, want run %s, %s", a.status, a.body, run, status)
	}
}

// TestStandbyReads: two processes read from a standby that replays every commit 100 ms late. Each list contains what
// was committed before the request, by the same process, by the other one, and by a worker. A process whose URL names a
// copy of the database notices that.
func TestStandbyReads(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	_, key := customer(t, primary.URL(), 1_000_000)
	primary.Exec(t, "postgres", "CREATE DATABASE copy TEMPLATE aiv")
	standby := primary.Standby(t, "recovery_min_apply_delay=100ms")
	primary.Exec(t, "aiv", "CREATE ROLE aiv_serve LOGIN")
	cli[any](t, primary.URL(), "migrate", "-grant", "aiv_serve")
	as := func(c *storetest.Cluster) string { return strings.Replace(c.URL(), "user=aiv&", "user=aiv_serve&", 1) }
	var serves [2]*process
	for i := range serves {
		serves[i] = startServe(t, as(primary), "-read-url", as(standby), "-read-max-lag", "2s")
		serves[i].awaitStandby(t, true)
	}
	worker := newWorkerClient(t, primary.URL(), startDispatch(t, primary.URL()))

	const rounds = 3
	for i := range rounds {
		own, other := serves[i%2], serves[1-i%2]
		run := own.order(t, key.Key, fmt.Sprint("canceled-", i))
		own.lists(t, key.Key, run, "queued")
		other.lists(t, key.Key, run, "queued")
		other.send(t, 200, "POST", "/v1/runs/"+run+"/cancel", key.Key, "", "{}")
		other.lists(t, key.Key, run, "canceled")

		run = own.order(t, key.Key, fmt.Sprint("completed-", i))
		jobs := worker.claims(t, 100, 6)
		own.lists(t, key.Key, run, "running")
		worker.settles(t, jobs)
		results := own.get(t, "/v1/runs/"+run+"/results?status=completed", key.Key)
		if got := strings.Count(results.body, `"text":"of job_`); got != 6 {
			t.Errorf("%d answers after they were settled, want 6: %s", got, results.body)
		}
		own.lists(t, key.Key, run, "completed")
		if events := other.get(t, "/v1/events?type=run.completed&limit=1", key.Key); !strings.Contains(events.body, run) {
			t.Errorf("no event of run %s in %s", run, events.body)
		}
	}
	var total float64
	for _, p := range serves {
		served, left := p.reads(t)
		if served == 0 {
			t.Error("no read by the standby")
		}
		total += served + left // on a slow machine the standby may be too late for some
	}
	if total != 7*rounds {
		t.Errorf("%v reads, want %d", total, 7*rounds)
	}
	hasSamples(t, serves[0].metrics(t), nil)

	p := startServe(t, primary.URL(), "-read-url", strings.Replace(standby.URL(), "/aiv?", "/copy?", 1))
	p.awaitLog(t, "not a standby of the database")
	p.lists(t, key.Key, p.order(t, key.Key, "copy"), "queued")
	if served, left := p.reads(t); served != 0 || left != 1 {
		t.Errorf("with a copy: %v reads by the standby and %v by the primary", served, left)
	}
}

// TestFaultStandby: the standby is paused, killed, frozen and promoted while clients read. Every read succeeds and has
// what was committed before it. Reads return to the standby when it has caught up.
func TestFaultStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	_, key := customer(t, primary.URL(), 1_000_000)
	standby := primary.Standby(t)
	p := startServe(t, primary.URL(), "-read-url", standby.URL())

	orders := 0
	// atOnce creates a run and lists it, perhaps when the process does not know yet that the standby cannot be used.
	atOnce := func() {
		t.Helper()
		p.lists(t, key.Key, p.order(t, key.Key, fmt.Sprint(orders)), "queued")
		orders++
	}
	// reads waits until a list is read from the standby, or five are read from the primary.
	reads := func(byStandby bool) {
		t.Helper()
		p.awaitStandby(t, byStandby)
		before, left := p.reads(t)
		storetest.Eventually(t, fmt.Sprintf("reads by the standby: %t", byStandby), func() bool {
			for range 5 {
				atOnce()
			}
			after, leftAfter := p.reads(t)
			if !byStandby && leftAfter < left+5 {
				t.Errorf("%v reads by the standby, %v by the primary", after-before, leftAfter-left)
			}
			return !byStandby || after > before // a standby that is too late for a read leaves it to the primary
		})
	}
	reads(true)
	standby.Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
	waitUntil(t, standby.URL(), `SELECT pg_get_wal_replay_pause_state() = 'paused'`)
	atOnce()
	reads(false)
	standby.Exec(t, "postgres", "SELECT pg_wal_replay_resume()")
	reads(true)

	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				if a := p.getOnce(t, "?path=/v1/runs", key.Key); a.status != 200 {
					t.Errorf("got %d %s", a.status, a.body)
				}
				<-time.After(5 * time.Millisecond) // leaves the machine to the faults
			}
		})
	}
	for _, fault := range []struct{ begin, end func() }{
		{standby.Kill, func() { standby.Start(t) }},
		{standby.Freeze, standby.Thaw},
	} {
		fault.begin()
		atOnce()
		reads(false)
		fault.end()
		reads(true)
	}
	stop.Store(true)
	wg.Wait()

	p.isReady(t, "after the faults of the standby", 200, "ok")
	standby.Exec(t, "postgres", "SELECT pg_promote()")
	atOnce()
	reads(false)
	p.awaitLog(t, "was promoted")
}

// TestStandbyOfLostPrimary: the primary is lost, and one of its two standbys promoted. The process reads from the other
// one, which either had received more than the promoted one, so that it has a higher WAL position than the new primary
// but not what is written there, or follows the new primary. Then it serves reads again once it has recorded the new
// timeline.
func TestStandbyOfLostPrimary(t *testing.T) {
	for _, follows := range []bool{false, true} {
		t.Run(fmt.Sprintf("follows %t", follows), func(t *testing.T) {
			t.Parallel()
			primary := storetest.NewCluster(t)
			next, other := primary.Standby(t), primary.Standby(t)
			url := storetest.ClusterURL("&target_session_attrs=read-write", primary, next)
			_, key := customer(t, url, 1_000_000)
			p := startServe(t, url, "-read-url", other.URL())
			const replayed = `SELECT count(*) = %d FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()`
			waitUntil(t, primary.URL(), fmt.Sprintf(replayed, 2))
			p.awaitStandby(t, true)
			if !follows {
				next.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
				waitUntil(t, primary.URL(), `SELECT count(*) = 1 FROM pg_stat_replication`)
				primary.Exec(t, "aiv", `SELECT pg_logical_emit_message(false, 'test', repeat('x', 1000000))`)
				waitUntil(t, primary.URL(), fmt.Sprintf(replayed, 1))
			}
			primary.Kill()
			next.Exec(t, "postgres", "SELECT pg_promote()")
			if follows {
				other.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = 'host="+next.Dir+" port=5432 user=aiv application_name=standby'",
					"SELECT pg_reload_conf()")
				waitUntil(t, next.URL(), `SELECT count(*) = 1 FROM pg_stat_replication`)
				next.Exec(t, "postgres", "CHECKPOINT")
				waitUntil(t, next.URL(), fmt.Sprintf(replayed, 1))
				other.Exec(t, "postgres", "CHECKPOINT")
			} else {
				p.order(t, key.Key, "probe")                    // the process has connected to the new primary
				p.awaitLog(t, "follows the primary's timeline") // it has compared the standby with the new primary
			}
			orders := 0
			order := func() {
				run := p.order(t, key.Key, fmt.Sprint(orders))
				p.get(t, "?path=/v1/runs&limit=1", key.Key) // fails on connections to a lost primary
				p.lists(t, key.Key, run, "queued")
				orders++
			}
			for range 5 {
				order()
			}
			if !follows {
				p.awaitStandby(t, false)
				return
			}
			wait(t, "reads by the standby", `\naiv_reads_total\{server="standby"\} [1-9]`, func() string { order(); return p.metrics(t) })
		})
	}
}
