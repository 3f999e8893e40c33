package delivery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"
)

// TestDroppedWhileRead: deliveries that are dropped during a read of later ones are read next, before the rest of a
// backlog.
func TestDroppedWhileRead(t *testing.T) {
	f, c, r := newPair(t, 204)
	release := r.hold(t)
	ids := c.record(100)
	h := f.hook(&hook{sql: readDue})
	f.poll() // reads 5, of which it starts 4
	h.end = func() {
		f.d.mu.Lock()
		defer f.d.mu.Unlock()
		f.d.turns.dropReady(f.d.accounts[c.account].endpoints[0])
	}
	f.poll() // reads the next 5; the fifth of the first 5 is dropped
	h.end = nil
	release()
	f.end()
	f.poll()
	f.d.attempts.Wait()
	if r.times(ids[4]) != 1 || r.received() == 100 {
		t.Errorf("the dropped event was received %d times, %d events in all", r.times(ids[4]), r.received())
	}
}

// TestReadOfEventsFails: deliveries whose events could not be read are read next, before the rest of a backlog.
func TestReadOfEventsFails(t *testing.T) {
	f, c, r := newPair(t, 204)
	ids := c.record(100)
	h := f.hook(&hook{sql: readEvents})
	h.start = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	if err := f.d.round(t.Context(), true); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h.start = nil
	f.poll()
	f.d.attempts.Wait()
	if r.times(ids[0]) != 1 || r.received() == 100 {
		t.Errorf("the first event was received %d times, %d events in all", r.times(ids[0]), r.received())
	}
}

// TestSlowRounds: a round that takes longer than maxReadyAge, because of a slow database, starts what it has read.
func TestSlowRounds(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.record(1)
	f.d.turns.limits.readyAge = maxReadyAge
	f.hook(&hook{sql: readEvents, start: func(ctx context.Context) context.Context {
		time.Sleep(maxReadyAge + time.Millisecond)
		return ctx
	}})
	storetest.Eventually(t, "the event is received", func() bool {
		f.poll()
		f.d.attempts.Wait()
		return r.received() == 1
	})
}

// TestReadsBesideOldSnapshot: a read does not pass the deliveries that were written since the oldest snapshot of the
// database, whose index entries remain.
func TestReadsBesideOldSnapshot(t *testing.T) {
	webhookstest.SkipOnCitus(t)
	f, c, r := newPair(t, 204)
	c.record(1000)
	old := storetest.Begin(t, f.Pool, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
	must(t, old.QueryRow(t.Context(), `SELECT count(*) FROM webhook_deliveries`).Scan(new(int)))
	reads := &storetest.Statements{}
	f.d.cfg.Pool = storetest.WithTracer(t, f.Pool, reads)
	for r.received() < 500 {
		f.deliver()
	}
	f.d.stopping = true                                               // the next read is not followed by attempts
	f.d.accounts[c.account].endpoints[0].fetch.restarted = time.Now() // also where the test has taken long
	f.poll()
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
	f, c, r := newPair(t, 204)
	c.record(minFetch + 1)
	f.deliver() // all of them, of which the last one is the cursor
	late := c.record(1)[0]
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE event_id = $1`, late)
	f.deliver()
	f.deliver()
	equal(t, 1, r.times(late), "requests with the late event")
}

// TestReleasedUntilNextIsDue: an account in which many deliveries wait for a retry is released until the first of them
// is due.
func TestReleasedUntilNextIsDue(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	c.create(attemptedURL + "2")
	c.record(2 * minFetch)
	for _, order := range []string{"ASC", "DESC"} { // of the endpoints
		f.Exec(t, `
UPDATE webhook_deliveries d SET next_attempt_at = to_timestamp($2 + n * 3600)
FROM (SELECT event_id, endpoint_id, row_number() OVER (ORDER BY endpoint_id `+order+`, event_id) AS n
  FROM webhook_deliveries WHERE account_id = $1) o
WHERE d.account_id = $1 AND d.event_id = o.event_id AND d.endpoint_id = o.endpoint_id`,
			c.account, float64(time.Now().Unix()))
		c.wake()
		f.poll()
		f.rows(1, `webhook_queues WHERE owner IS NULL AND wake_at = (SELECT min(next_attempt_at) FROM webhook_deliveries)`)
	}
}

// TestReadsBetweenPolls: an endpoint that keeps up gets what was due at a poll before the next poll.
func TestReadsBetweenPolls(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.record(100)
	f.poll()
	read := f.task("read_webhook_deliveries")
	read.Every = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.runUntil(ctx, []task.Task{read}) })
	storetest.Eventually(t, "all are received", func() bool { return r.received() == 100 })
	stop()
	running.Wait()
}

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of
// the account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.wake()
	f.hook(before(releaseAccounts, func() {
		if f.Count(t, `SELECT count(*) FROM events`) == 0 {
			c.record(1)
		}
	}))
	f.poll()
	f.rows(0, `webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`)
	f.round()
	f.poll()
	f.d.attempts.Wait()
	equal(t, 1, r.received(), "requests")
}

// TestWrittenWhileRead: a delivery whose outcome is written during a read, which found it as it was before, is not
// attempted again.
func TestWrittenWhileRead(t *testing.T) {
	f, c, r := newPair(t, 500)
	c.record(1)
	h := f.hook(&hook{sql: readDue})
	f.poll()
	f.d.attempts.Wait()
	h.end = func() { must(t, f.d.writeOutcomes(t.Context())) }
	f.poll()
	f.d.attempts.Wait()
	f.rows(1, `webhook_deliveries WHERE attempts = 1`)
	equal(t, 1, r.received(), "requests")
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
	f.run()
	storetest.Eventually(t, "all are received", func() bool { return r.received() == accounts*each })
}
