package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// rounds performs rounds until the test ends.
func (d *Dispatcher) rounds(t *testing.T, ticks <-chan time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.runRounds(ctx, t.Context(), ticks) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		d.attempts.Wait()
	})
}

// TestEachTickPolls: no poll is left out because the one before began late.
func TestEachTickPolls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var polls atomic.Int32
	d := f.hookedDispatcher(t, &hook{sql: dueAccounts, end: func() { polls.Add(1) }})
	ticks := make(chan time.Time)
	d.rounds(t, ticks)
	for range 4 {
		ticks <- time.Now()
	}
	if n := polls.Load(); n < 4 { // the first one, and one for each tick but the last
		t.Errorf("%d polls", n)
	}
}

// TestReadsBetweenPolls: an endpoint that keeps up gets what was due at a poll before the next poll.
func TestReadsBetweenPolls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	r := newReceiver(t, nil)
	f.endpoint(t, account, r.URL)
	f.record(t, account, 100)
	f.dispatcher().rounds(t, nil)
	storetest.Eventually(t, "all are received", func() bool { return r.received() == 100 })
}
