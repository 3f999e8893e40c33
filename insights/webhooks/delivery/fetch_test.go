package delivery

import (
	"sync"
	"testing"
	"time"
)

// TestCommittedLateBeforeRelease: an account is not released if a delivery was committed before the cursor of the last
// read.
func TestCommittedLateBeforeRelease(t *testing.T) {
	f, c, _ := newPair(t, 204)
	c.record(minFetch + 1)
	f.deliver() // all of them, of which the last one is the cursor
	late := c.record(1)[0]
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE event_id = $1`, late)
	f.deliver()
	f.deliver()
	f.Rows(t, 1, `webhook_deliveries WHERE event_id = $1 AND status = 'delivered'`, late)
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
		f.Rows(t, 1, `webhook_queues WHERE owner IS NULL AND wake_at = (SELECT min(next_attempt_at) FROM webhook_deliveries)`)
	}
}

// TestRecordedWhileReleased: an account whose event is recorded between the read of due deliveries and the release of
// the account stays with the process until the event is delivered.
func TestRecordedWhileReleased(t *testing.T) {
	f, c, r := newPair(t, 204)
	c.wake()
	f.before(releaseAccounts, sync.OnceFunc(func() { c.record(1) }))
	f.poll()
	f.Rows(t, 0, `webhook_queues WHERE owner IS NULL AND wake_at = 'infinity'`)
	must(t, f.d.round(t.Context(), false))
	f.poll()
	f.d.attempts.Wait()
	equal(t, 1, r.received(), "requests")
}
