package delivery

import (
	"testing"
	"time"
)

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

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of
// the account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.wake()
	f.hook(&hook{sql: releaseAccounts, before: func() {
		if f.Count(t, `SELECT count(*) FROM events`) == 0 {
			c.record(1)
		}
	}})
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
	h.after = func() { must(t, f.d.writeOutcomes(t.Context())) }
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
	for range accounts * each {
		f.deliver()
	}
	equal(t, accounts*each, r.received(), "requests")
}
