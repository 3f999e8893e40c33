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
	return p.metric(t, `aiv_reads_total{server="standby"}`), p.metric(t, `aiv_reads_total{server="primary"}`)
}

// lists fails the test unless the process lists the run with the status.
func (p *process) lists(t *testing.T, key, run, status string) {
	t.Helper()
	a := p.getOnce(t, "?path=/v1/runs&limit=1", key)
	if a.status != 200 || !strings.Contains(a.body, run) || member(t, a.body, "status") != status {
		t.Errorf("got %d %s, want run %s, %s", a.status, a.body, run, status)
	}
}

// TestFaultStandby: two processes, as a role that aiv migrate has made for them, read from a standby that replays every
// commit 100 ms late. Each list contains what was committed before the request, by the same process, by the other one,
// and by a worker. Then the standby is paused, killed, frozen and promoted while clients read: every read succeeds, and
// reads return to the standby when it has caught up. A process whose URL names a copy of the database notices that.
func TestFaultStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	_, key := customer(t, primary.URL())
	primary.Exec(t, "postgres", "CREATE DATABASE copy TEMPLATE aiv")
	standby := primary.Standby(t, "recovery_min_apply_delay=100ms")
	primary.Exec(t, "aiv", "CREATE ROLE aiv_serve LOGIN")
	cli[any](t, primary.URL(), "migrate", "-grant", "aiv_serve")
	as := func(c *storetest.Cluster) string { return strings.Replace(c.URL(), "user=aiv&", "user=aiv_serve&", 1) }
	var serves [2]*process
	for i := range serves {
		serves[i] = startServe(t, as(primary), "-read-url", as(standby), "-read-max-lag", "2s")
		serves[i].hasMetrics(t, "aiv_standby_current 1")
	}
	worker := newWorkerClient(t, primary.URL(), startDispatch(t, primary.URL()))
	refuses(t, standby.URL(), "the database server is a standby, which is read-only; name the primary", "serve", "-migrate")
	refuses(t, standby.URL(), "the database server is a standby, ", onFreePorts("dispatch")...)

	const rounds = 3
	for i := range rounds {
		own, other := serves[i%2], serves[1-i%2]
		run := own.order(t, key.Key, fmt.Sprint("canceled-", i))
		own.lists(t, key.Key, run, "queued")
		other.lists(t, key.Key, run, "queued")
		other.send(t, 200, "POST", "/v1/runs/"+run+"/cancel", key.Key, "", "{}")
		other.lists(t, key.Key, run, "canceled")

		run = own.order(t, key.Key, fmt.Sprint("completed-", i))
		jobs := worker.claims(t, 6)
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
	serves[0].documentsMetrics(t)

	p := startServe(t, primary.URL(), "-read-url", strings.Replace(standby.URL(), "/aiv?", "/copy?", 1))
	p.awaitLog(t, "not a standby of the database")
	p.lists(t, key.Key, p.order(t, key.Key, "copy"), "queued")
	if served, left := p.reads(t); served != 0 || left != 1 {
		t.Errorf("with a copy: %v reads by the standby and %v by the primary", served, left)
	}

	p = serves[0]
	orders := 0
	// atOnce creates a run and lists it, perhaps when the process does not know yet that the standby cannot be used.
	atOnce := func() {
		t.Helper()
		p.lists(t, key.Key, p.order(t, key.Key, fmt.Sprint(orders)), "queued")
		orders++
	}
	// readsBy waits until the standby is used, or until it is not, and a list is read from it, or five from the primary.
	readsBy := func(byStandby bool) {
		t.Helper()
		p.hasMetrics(t, map[bool]string{true: "aiv_standby_current 1", false: "aiv_standby_current 0"}[byStandby])
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
		{func() {
			standby.Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
			waitUntil(t, standby.URL(), `SELECT pg_get_wal_replay_pause_state() = 'paused'`)
		}, func() { standby.Exec(t, "postgres", "SELECT pg_wal_replay_resume()") }},
		{standby.Kill, func() { standby.Start(t) }},
		{standby.Freeze, standby.Thaw},
	} {
		fault.begin()
		atOnce()
		readsBy(false)
		fault.end()
		readsBy(true)
	}
	stop.Store(true)
	wg.Wait()
	p.isReady(t, "after the faults of the standby", 200, "ok")
	standby.Exec(t, "postgres", "SELECT pg_promote()")
	atOnce()
	readsBy(false)
	p.awaitLog(t, "was promoted")
}

// TestStandbyOfLostPrimary: the primary is lost, one of its two standbys promoted, and the other one follows it. Each list
// has what was committed before, and the process reads from the standby again once that has recorded the new timeline.
func TestStandbyOfLostPrimary(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	next, other := primary.Standby(t), primary.Standby(t)
	url := storetest.ClusterURL("&target_session_attrs=read-write", primary, next)
	_, key := customer(t, url)
	p := startServe(t, url, "-read-url", storetest.ClusterURL("&target_session_attrs=standby", next, other))
	const replayed = `SELECT count(*) = %d FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()`
	waitUntil(t, primary.URL(), fmt.Sprintf(replayed, 2))
	p.hasMetrics(t, "aiv_standby_current 1")
	primary.Kill()
	next.Exec(t, "postgres", "SELECT pg_promote()")
	other.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = 'host="+next.Dir+" port=5432 user=aiv application_name=standby'",
		"SELECT pg_reload_conf()")
	waitUntil(t, next.URL(), fmt.Sprintf(replayed, 1))
	next.Exec(t, "postgres", "CHECKPOINT")
	waitUntil(t, next.URL(), fmt.Sprintf(replayed, 1))
	other.Exec(t, "postgres", "CHECKPOINT")
	orders := 0
	storetest.Eventually(t, "reads by the standby", func() bool {
		run := p.order(t, key.Key, fmt.Sprint(orders))
		p.get(t, "?path=/v1/runs&limit=1", key.Key) // fails on connections to a lost primary
		p.lists(t, key.Key, run, "queued")
		orders++
		served, _ := p.reads(t)
		return orders >= 5 && served > 0
	})
}
