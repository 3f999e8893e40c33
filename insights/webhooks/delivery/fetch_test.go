package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

// TestDroppedWhileRead: deliveries that are dropped during a read of later ones are read next, before the rest of a
// backlog.
func TestDroppedWhileRead(t *testing.T) {
	t.Parallel()
	f, account, r, respond := newHangingPair(t)
	ids := f.record(t, account, 100)
	slices.SortFunc(ids, store.ID.Compare) // the order in which they are due
	h := &hook{sql: readDue}
	d := f.hookedDispatcher(t, h)
	must(t, d.round(t.Context(), t.Context(), true)) // reads 5, of which it starts 4
	h.end = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.turns.dropReady(d.accounts[account].endpoints[0])
	}
	must(t, d.round(t.Context(), t.Context(), true)) // reads the next 5; the fifth of the first 5 is dropped
	h.end = nil
	close(respond)
	d.attempts.Wait()
	must(t, d.writeOutcomes(t.Context()))
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	if r.times(ids[4]) != 1 || r.received() == 100 {
		t.Errorf("the dropped delivery was received %d times, %d events were received in all", r.times(ids[4]), r.received())
	}
}

// TestReadOfEventsFails: deliveries whose events could not be read are read next, before the rest of a backlog.
func TestReadOfEventsFails(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, nil)
	ids := f.record(t, account, 100)
	slices.SortFunc(ids, store.ID.Compare)
	h := &hook{sql: readEvents, start: func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}}
	d := f.hookedDispatcher(t, h)
	if err := d.round(t.Context(), t.Context(), true); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h.start = nil
	must(t, d.round(t.Context(), t.Context(), true))
	d.attempts.Wait()
	if r.times(ids[0]) != 1 || r.received() == 100 {
		t.Errorf("the first event was received %d times, %d events were received in all", r.times(ids[0]), r.received())
	}
}

// TestReadsBesideOldSnapshot: a read does not pass the deliveries that were written since the oldest snapshot of the
// database, whose index entries remain.
func TestReadsBesideOldSnapshot(t *testing.T) {
	t.Parallel()
	webhookstest.SkipOnCitus(t)
	f, account, r := newPair(t, nil)
	f.record(t, account, 1000)
	old := f.begin(t, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
	must(t, old.QueryRow(t.Context(), `SELECT count(*) FROM webhook_deliveries`).Scan(new(int)))
	reads := &storetest.Statements{}
	d := New(Config{Pool: storetest.WithTracer(t, f.Pool, reads), Master: f.master, AllowPrivate: true, InFlight: 1024})
	for r.received() < 500 {
		d.deliver(t)
	}
	d.stopping = true // the next read is not followed by attempts
	must(t, d.round(t.Context(), t.Context(), true))
	var latest []any // arguments
	for _, s := range reads.Taken() {
		if s.SQL == readDue {
			latest = s.Args
		}
	}
	latest[len(latest)-1] = []int{1}
	if cost := storetest.Explain(t, f.Pool, readDue, latest...); cost.Pages > 20 {
		t.Errorf("a read touches %d pages", cost.Pages)
	}
}

// TestRestartFetch: reads go on after a cursor for restartFetch, and then begin at the first pending delivery,
// because one that was committed late may lie before the cursor.
func TestRestartFetch(t *testing.T) {
	t.Parallel()
	var f fetch
	begin, at := time.Now(), cursor{time.Now(), store.NewID()}
	for i, want := range []cursor{{}, at, {}} {
		if f.begin(begin.Add(time.Duration(i) * restartFetch * 2 / 3)); f.cursor != want {
			t.Errorf("read %d begins at %v, want %v", i, f.cursor, want)
		}
		f.end(&dueRead{rows: 1, due: 1, limit: 1, last: at})
	}
}

// TestCommittedLateBeforeRelease: an account is not released if a delivery was committed before the cursor of the last
// read.
func TestCommittedLateBeforeRelease(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, nil)
	f.record(t, account, minFetch+1)
	d := f.dispatcher()
	d.deliver(t) // all of them, of which the last one is the cursor
	late := f.record(t, account, 1)[0]
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE account_id = $1 AND event_id = $2`, account, late)
	d.deliver(t)
	d.deliver(t)
	if r.times(late) != 1 {
		t.Errorf("the delivery was received %d times", r.times(late))
	}
}

// TestReleasedUntilNextIsDue: an account in which many deliveries wait for a retry is released until the first of them
// is due.
func TestReleasedUntilNextIsDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	for i := range 2 {
		f.endpoint(t, account, fmt.Sprintf("%s%d", attemptedURL, i))
	}
	f.record(t, account, 2*minFetch)
	d := f.dispatcher()
	for _, order := range []string{"ASC", "DESC"} { // of the endpoints
		f.Exec(t, `
UPDATE webhook_deliveries d SET next_attempt_at = to_timestamp($2 + n * 3600)
FROM (SELECT event_id, endpoint_id, row_number() OVER (ORDER BY endpoint_id `+order+`, event_id) AS n FROM webhook_deliveries WHERE account_id = $1) o
WHERE d.account_id = $1 AND d.event_id = o.event_id AND d.endpoint_id = o.endpoint_id`, account, float64(time.Now().Unix()))
		f.wake(t, account)
		must(t, d.round(t.Context(), t.Context(), true))
		equal(t, 1, f.Count(t, `
SELECT count(*) FROM webhook_queues WHERE owner IS NULL AND wake_at = (SELECT min(next_attempt_at) FROM webhook_deliveries)`),
			"accounts that wake in time, endpoints in order ", order)
	}
}

// TestReadsBetweenPolls: an endpoint that keeps up gets what was due at a poll before the next poll.
func TestReadsBetweenPolls(t *testing.T) {
	t.Parallel()
	f, account, r := newPair(t, nil)
	f.record(t, account, 100)
	d := f.dispatcher()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.runRounds(ctx, t.Context(), nil) }) // one poll
	storetest.Eventually(t, "all are received", func() bool { return r.received() == 100 })
	stop()
	running.Wait()
	d.attempts.Wait()
}
