package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/store"
)

// newTurns returns turns with accounts that have an endpoint for each letter of their text: h is healthy, and the
// latest attempt to f failed.
func newTurns(inFlight int, texts ...string) (*turns, []*account) {
	var accounts []*account
	for _, text := range texts {
		a := &account{id: store.NewID(), leaseEnd: time.Now().Add(time.Hour)}
		for _, health := range text {
			e := &endpoint{account: a, loaded: make(map[store.ID]bool), unhealthy: health == 'f'}
			a.endpoints = append(a.endpoints, e)
		}
		accounts = append(accounts, a)
	}
	limits := newLimits(inFlight)
	limits.readyAge = time.Hour
	return &turns{limits: limits}, accounts
}

// ready adds ready deliveries to each endpoint of accounts.
func (q *turns) ready(accounts ...*account) {
	for _, a := range accounts {
		for _, e := range a.endpoints {
			for range 20 {
				q.load(&delivery{endpoint: e, event: store.NewID(), readySince: time.Now()})
				q.enqueue(a)
			}
		}
	}
}

// start starts what may start and returns the requests in flight of each endpoint.
func (q *turns) start(accounts []*account) string {
	for q.next(time.Now()) != nil {
	}
	var all []string
	for _, a := range accounts {
		text := ""
		for _, e := range a.endpoints {
			text += fmt.Sprint(e.inFlight)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// TestRequestsAreShared: how many requests each endpoint gets where a process may have a number in flight.
func TestRequestsAreShared(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		inFlight       int
		accounts, want string
	}{
		{"4 to an endpoint and 16 to an account", 1024, "h hhhhhh", "4 333322"},
		{"one to an endpoint that fails, which leaves others to its account", 1024, "fffffffffh", "1111111114"},
		{"half of all to endpoints that fail", 8, "f f f f f f h", "1 1 1 1 0 0 2"},
	} {
		q, accounts := newTurns(test.inFlight, strings.Fields(test.accounts)...)
		q.ready(accounts...)
		equal(t, test.want, q.start(accounts), test.name)
	}
	q, accounts := newTurns(8, "h")
	q.ready(accounts...)
	accounts[0].leaseEnd = time.Now().Add(attemptTimeout + drainTimeout)
	equal(t, "0", q.start(accounts), "near the end of a lease, after which another process may claim the account")
}

// TestRequestsAreKeptForOtherAccounts: accounts with requests in flight get three quarters of the requests, in turns,
// however often they were queued. Others get the rest.
func TestRequestsAreKeptForOtherAccounts(t *testing.T) {
	t.Parallel()
	q, accounts := newTurns(8, "h", "h", "h", "h")
	q.ready(accounts[:2]...)
	equal(t, "3 3 0 0", q.start(accounts), "two accounts")
	q.ready(accounts[2:]...)
	equal(t, "3 3 1 1", q.start(accounts), "two more accounts")
	for range 3 {
		q.end(accounts[0].endpoints[0], false)
	}
	q.enqueue(accounts[0])
	equal(t, "1 3 2 1", q.start(accounts), "after the end of three requests: the third account was the next")
}

// TestFullProcessYields: a process that owns as many accounts as it may releases one that has always something due,
// also with ready deliveries, so that another account is served.
func TestFullProcessYields(t *testing.T) {
	f, c, first := newPair(t, 204)
	f.d.turns.limits.accounts = 1
	c.record(100)
	f.deliver()
	f.d.stopping = true // no attempt starts
	f.poll()
	for _, a := range f.d.accounts {
		a.claimedAt = time.Now().Add(-2 * yieldAfter)
	}
	second := newReceiver(t, 204)
	f.customer(second.URL).record(1)
	f.poll()
	f.owned(0)
	f.d.stopping = false
	f.deliver()
	equal(t, []int{minFetch + 1, 1}, []int{first.received(), second.received()}, "requests of the accounts")
}

// TestReadsBetweenPolls: an endpoint that keeps up gets what was due at a poll before the next poll.
func TestReadsBetweenPolls(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.record(100)
	for n := range 100 {
		must(t, f.d.round(t.Context(), n == 0))
		f.end()
	}
	equal(t, 100, r.received(), "requests")
}

// TestBytesOfRound: a round reads events until those in memory have limits.bytes. Later rounds read the others.
func TestBytesOfRound(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t, 204)
	const accounts, each = 10, 20
	for range accounts {
		f.customer(r.URL).record(each)
	}
	f.d.turns.limits.bytes = 1000
	f.d.stopping = true // no attempt starts
	for range 2 {
		f.poll()
		if n := f.d.turns.bytes; n < 1000 || n > 1200 { // with the last event
			t.Errorf("%d bytes in memory, the limit is 1000", n)
		}
	}
	f.d.stopping = false
	for range accounts * each {
		f.deliver()
	}
	equal(t, accounts*each, r.received(), "requests")
}
