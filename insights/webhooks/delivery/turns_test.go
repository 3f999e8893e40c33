package delivery

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
)

// TestTurns: accounts take turns, however often they were queued.
func TestTurns(t *testing.T) {
	t.Parallel()
	q, now := turns{limits: newLimits(8)}, time.Now()
	var accounts []*account
	for range 2 {
		a := &account{id: store.NewID(), leaseEnd: now.Add(leaseTime)}
		e := &endpoint{account: a, loaded: make(map[store.ID]bool)}
		a.endpoints = []*endpoint{e}
		for range 3 {
			q.load(&delivery{endpoint: e, event: store.NewID(), fetchedAt: now})
			q.enqueue(a)
		}
		accounts = append(accounts, a)
	}
	for i := range 6 {
		if next := q.next(now); next == nil || next.endpoint.account != accounts[i%2] {
			t.Errorf("delivery %d is %+v, want one of account %d", i, next, i%2)
		}
	}
}

// TestRequestsAreKeptForOtherAccounts: accounts with requests in flight get three quarters of the requests, and others
// the rest.
func TestRequestsAreKeptForOtherAccounts(t *testing.T) {
	t.Parallel()
	q, now := turns{limits: newLimits(8)}, time.Now()
	var accounts []*account
	for range 4 {
		a := &account{id: store.NewID(), leaseEnd: now.Add(leaseTime)}
		a.endpoints = []*endpoint{{account: a, loaded: make(map[store.ID]bool)}}
		accounts = append(accounts, a)
	}
	ready := func(a *account) {
		for range 4 {
			q.load(&delivery{endpoint: a.endpoints[0], event: store.NewID(), fetchedAt: now})
		}
		q.enqueue(a)
	}
	start := func() {
		for q.next(now) != nil {
		}
	}
	check := func(when string, want ...int) {
		t.Helper()
		var got []int
		for _, a := range accounts {
			got = append(got, a.inFlight)
		}
		equal(t, want, got, "requests in flight, ", when)
	}
	ready(accounts[0])
	ready(accounts[1])
	start()
	check("two accounts", 3, 3, 0, 0)
	ready(accounts[2])
	ready(accounts[3])
	start()
	check("two more accounts", 3, 3, 1, 1)
	for range 3 {
		q.end(accounts[0].endpoints[0], false)
	}
	q.enqueue(accounts[0])
	start()
	check("after the end of three requests", 1, 3, 2, 1) // the third account was the next
}

// TestFailedEndpointGetsOneRequest: an endpoint whose latest attempt failed gets one request at a time until one succeeds.
func TestFailedEndpointGetsOneRequest(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	respond := make(chan struct{}, 100) // more than there are attempts in a step
	f, account, _ := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		<-respond
		w.WriteHeader(int(status.Load()))
	})
	f.record(t, account, 4)
	d := f.dispatcher()
	d.turns.limits.inFlight = 6 // 3 of them to endpoints that fail, and 2 kept for other accounts
	for i, step := range []struct{ inFlight, status int }{{4, 500}, {1, 500}, {1, 204}, {4, 204}} {
		if i == 3 {
			f.record(t, account, 4)
		}
		f.due(t, account)
		must(t, d.round(t.Context(), t.Context(), true))
		equal(t, step.inFlight, d.Stats().InFlight, "requests in flight, step ", i)
		status.Store(int32(step.status))
		for range cap(respond) {
			respond <- struct{}{}
		}
		d.attempts.Wait()
		for len(respond) > 0 {
			<-respond
		}
		must(t, d.writeOutcomes(t.Context()))
		equal(t, 0, d.turns.unhealthy, "requests to endpoints that fail, step ", i)
	}
}

// TestMemoryOfHangingEndpoint: while the only request that an endpoint may get hangs, no other deliveries to it stay in
// memory.
func TestMemoryOfHangingEndpoint(t *testing.T) {
	t.Parallel()
	f, account, _, respond := newHangingPair(t)
	f.Exec(t, `UPDATE webhook_endpoints SET failing_since = now()`)
	f.record(t, account, 10)
	d := f.dispatcher()
	must(t, d.round(t.Context(), t.Context(), true))
	for _, ready := range d.accounts[account].endpoints[0].ready {
		ready.fetchedAt = time.Now().Add(-2 * maxReadyAge)
	}
	must(t, d.round(t.Context(), t.Context(), true))
	equal(t, 1, d.accounts[account].loaded, "deliveries are in memory")
	close(respond)
	d.attempts.Wait()
}
