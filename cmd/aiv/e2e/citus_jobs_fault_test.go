//go:build citus

package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
	"aiv/store/storetest"
)

// TestFaultCitusDispatch kills the workers of a cluster in turn, and the coordinator, while jobs of accounts on all of
// them are worked.
func TestFaultCitusDispatch(t *testing.T) {
	kills, runs := byForm(3, 15), byForm(24, 120)
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	var all []string
	for _, keys := range c.accounts(t, 2) {
		all = append(all, keys...)
	}
	f := newFleetOf(t, c.url, all, runs, 20, 2)
	for i := range f.dispatch {
		logFailures(t, f.dispatch[i].Load())
	}
	f.begin(4)
	for n := range kills {
		f.until("the next kill", func(settled, _ int) bool { return settled > f.total*n/(kills+2) })
		server := n % (1 + citusWorkers)
		c.kill(t, server)
		before, failed := f.counts()
		empty := f.empty.Load()
		f.until("requests fail, or jobs of the others are worked", func(settled, n int) bool {
			return n > failed || server > 0 && (settled > before || f.empty.Load() > empty)
		})
		c.resume(t, server)
	}
	pool := open(t, c.url)
	f.end(pool)
	c.endPrepared(t)
	f.check(fmt.Sprintf("%d kills of servers", kills), pool)
}

// claimSome claims up to limit jobs under long leases. It repeats a claim that gets 503.
func claimSome(t *testing.T, w *workerClient, limit int) (claimed []job) {
	t.Helper()
	eventually(t, "a claim", func() (err error) {
		claimed, err = w.claim(limit, 0)
		return err
	})
	return claimed
}

// settleAll settles jobs as completed. It repeats a request that gets 503.
func settleAll(t *testing.T, w *workerClient, jobs []job) {
	t.Helper()
	eventually(t, "a settlement", func() error {
		states, err := w.settle(t.Context(), jobs)
		for _, s := range states {
			if s != "settled" {
				t.Errorf("a job is %s", s)
			}
		}
		return err
	})
}

// eventually repeats what fails with 503.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	storetest.Eventually(t, what, func() bool {
		err := try()
		if err != nil && !unavailable(err) {
			t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// claimUntil claims until it has so many jobs.
func claimUntil(t *testing.T, w *workerClient, n int) (claimed []job) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("%d jobs are claimed", n), func() bool {
		claimed = append(claimed, claimSome(t, w, n-len(claimed))...)
		return len(claimed) >= n
	})
	return claimed
}

// TestFaultCitusServerAway: while a server of a cluster is away, jobs of the accounts on the other are handed out and
// settled, also those ordered since, and their answers are recounted. The limit of a provider's jobs in flight includes
// those of the server that is away.
func TestFaultCitusServerAway(t *testing.T) {
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 2)
	cli[any](t, c.url, "providers", "set", "p", "-in-flight", "10")
	serve, dispatch := startServe(t, c.url), startDispatch(t, c.url)
	logFailures(t, dispatch)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	serve.order(t, keys[1][0], "before")
	first := claimUntil(t, w, 2)
	serve.order(t, keys[2][0], "before")

	c.kill(t, 1)
	serve.order(t, keys[2][1], "since")
	held := claimUntil(t, w, 8)
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out beyond the limit of 10 in flight", len(more))
	}
	settleAll(t, w, held)
	settleAll(t, w, claimUntil(t, w, 4))
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out after all 12 of the accounts that can be served", len(more))
	}
	m := &measurement{serve: serve, key: keys[2][1]}
	serve.send(t, http.StatusCreated, "POST", "/v1/brands", m.key, "brand", `{"kind":"own","name":"Kovalt"}`)
	must(t, m.await("/v1/metrics", 6, func() error { return nil }))

	c.resume(t, 1)
	settleAll(t, w, first)
	settleAll(t, w, claimUntil(t, w, 4))
	c.endPrepared(t)
	c.settled(t, 3)
}

// TestFaultCitusServerBackDuringRecount: answers of accounts on a server that is back are recounted, also if the recount
// that has found it unreachable has not ended.
func TestFaultCitusServerBackDuringRecount(t *testing.T) {
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 1)
	serve, dispatch := startServe(t, c.url), startDispatch(t, c.url)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	serve.order(t, keys[1][0], "1")
	serve.order(t, keys[2][0], "2")
	serve.order(t, keys[2][0], "3") // so that the recount of this account has two steps
	settleAll(t, w, claimUntil(t, w, 18))
	must(t, dispatch.stop())
	for _, of := range keys[1:] {
		serve.send(t, http.StatusCreated, "POST", "/v1/brands", of[0], "brand", `{"kind":"own","name":"Kovalt"}`)
	}

	c.kill(t, 1)
	pool := open(t, c.url)
	outage := store.NewOutage(pool, slog.New(slog.DiscardHandler))
	resume := sync.OnceFunc(func() {
		c.resume(t, 1)
		must(t, outage.Update(t.Context())) // as aiv dispatch does once a second
		time.Sleep(time.Second)             // a recount looks for changed accounts once a second
	})
	isStep := func(sql string) bool { return strings.Contains(sql, "LIMIT 32 FOR UPDATE SKIP LOCKED") }
	traced := storetest.WithTracer(t, pool, storetest.OnStatement{Matches: isStep, Do: func(*pgx.Conn) { resume() }})
	if n, err := counting.New(traced, outage).Recount(t.Context()); n != 18 || err != nil {
		t.Errorf("%d answers were recounted, want 18 (%v)", n, err)
	}
}

// TestFaultCitusInDoubt kills the coordinator after it has committed a claim and before the server of the account has,
// and then that server. Until both are back, the provider has no more jobs in flight than its limit.
func TestFaultCitusInDoubt(t *testing.T) {
	c := newCitusCluster(t)
	customer(t, c.url, 1_000_000)
	keys := c.accounts(t, 1)
	cli[any](t, c.url, "providers", "set", "p", "-in-flight", "10")
	serve, dispatch := startServe(t, c.url), startDispatch(t, c.url)
	w := &workerClient{dispatch.base, newWorker(t, c.url).Token}
	serve.order(t, keys[2][0], "seen") // the dispatcher notes that it has seen the worker
	settleAll(t, w, claimUntil(t, w, 6))
	serve.order(t, keys[1][0], "in-doubt")
	serve.order(t, keys[2][0], "later-1")
	waitUntil(t, c.url, `SELECT count(*) = 0 FROM job_arrivals`)

	// Commits on the coordinator wait for a standby that does not exist, after the other servers have prepared theirs.
	pool := open(t, c.url)
	exec := func(sql ...string) { storetest.Exec(t, pool, sql...) }
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '-1'`, `ALTER SYSTEM SET synchronous_standby_names = 'none'`, `SELECT pg_reload_conf()`)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for { // until it waits, and is killed
			if _, err := pool.Exec(t.Context(), `UPDATE schema_migrations SET checksum = checksum`); err != nil {
				return
			}
		}
	}()
	const waiting = `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	waitUntil(t, c.url, waiting)
	claimed := make(chan error, 1)
	go func() { _, err := w.claim(1, 0); claimed <- err }()
	waitUntil(t, c.url, waiting+` AND query = 'COMMIT'`) // of the claim; background tasks may wait as well
	c.kill(t, 0)
	if err := <-claimed; err == nil {
		t.Fatal("the claim was committed")
	}
	<-stopped
	c.kill(t, 1)
	c.resume(t, 0)
	pool.Reset()
	exec(`ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	serve.order(t, keys[2][0], "later-2")
	held := claimUntil(t, w, 9)
	if more := claimSome(t, w, 10); len(more) > 0 {
		t.Errorf("%d jobs were handed out beyond the limit of 10 in flight", len(more))
	}
	settleAll(t, w, held)

	c.resume(t, 1)
	exec(`ALTER SYSTEM SET citus.recover_2pc_interval = '1s'`, `SELECT pg_reload_conf()`)
	c.endPrepared(t)
	for n := number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`); n > 0; {
		endLeases(t, pool)
		if got := claimSome(t, w, 10); len(got) > 0 {
			settleAll(t, w, got)
		}
		n = number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`)
	}
	c.settled(t, 4)
}
