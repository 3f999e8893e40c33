package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/storetest"
)

const attemptedURL = "https://a.example/"

var timedOut = result{err: webhooks.ErrorTimeout}

// write writes the outcomes of attempts with one result.
func (f *fixture) write(r result, attempts ...*delivery) error {
	var group []outcome
	for _, a := range attempts {
		group = append(group, newOutcome(a, attemptedURL, r))
	}
	return f.d.write(f.t.Context(), group)
}

// beginWrite begins to write outcomes and returns when it waits for a lock. The channel gets the error.
func (f *fixture) beginWrite(r result, attempts ...*delivery) <-chan error {
	written := make(chan error, 1)
	go func() { written <- f.write(r, attempts...) }()
	storetest.UntilWaiting(f.t, f.Pool, "transactionid")
	return written
}

// TestOutcomesAreReported: what a delivery reports after an attempt.
func TestOutcomesAreReported(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	tests := []struct {
		result result
		want   string
	}{
		{result{status: 204}, "delivered now; 1 attempts, 204, "},
		{result{410, webhooks.ErrorStatus, 0}, "failed; 1 attempts, 410, status"},
		{result{101, webhooks.ErrorStatus, 0}, "pending, again in 0s; 1 attempts, 101, status"},
		{result{999, webhooks.ErrorStatus, time.Hour}, "pending, again in 1h0m0s; 1 attempts, 999, status"},
		{result{307, webhooks.ErrorRedirect, 0}, "pending, again in 0s; 1 attempts, 307, redirect"},
		{result{0, webhooks.ErrorTimeout, 0}, "pending, again in 0s; 1 attempts, 0, timeout"},
		{result{0, webhooks.ErrorConnection, 0}, "pending, again in 0s; 1 attempts, 0, connection"},
		{result{0, webhooks.ErrorTLS, 0}, "pending, again in 0s; 1 attempts, 0, tls"},
		{result{0, webhooks.ErrorBlocked, 0}, "pending, again in 0s; 1 attempts, 0, blocked"},
	}
	var group []outcome
	wants := make(map[store.ID]string)
	for i, a := range c.attempts(len(tests)) {
		wants[a.event] = tests[i].want
		group = append(group, newOutcome(a, attemptedURL, tests[i].result))
	}
	must(t, f.d.write(t.Context(), group))
	got := make(map[store.ID]string)
	for id, d := range c.deliveries() {
		text := d.Status
		if d.DeliveredAt != nil && time.Since(*d.DeliveredAt) < time.Minute {
			text += " now"
		}
		if d.NextAttemptAt != nil {
			text += ", again in " + time.Until(*d.NextAttemptAt).Round(2*time.Minute).String()
		}
		got[id] = fmt.Sprintf("%s; %d attempts, %d, %s", text, d.Attempts, valueOf(d.LastStatus), valueOf(d.LastError))
	}
	equal(t, wants, got, "deliveries")
}

// valueOf returns what p points to, or the zero value.
func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// TestHealthOfGroup: what outcomes that are written together say about an endpoint. A success counts more than a
// failure, and a 410 more than both. Three days of failures disable the endpoint. Outcomes of the URL before a
// change, or of an endpoint that is disabled, say nothing.
func TestHealthOfGroup(t *testing.T) {
	f := newFixture(t)
	const day, since = 24 * time.Hour, "failing since then"
	for _, test := range []struct {
		before, statuses []int         // of attempts to the URL before a change, and to the present one
		failingFor       time.Duration // before; 0: not failing
		disabled         string        // before
		want             string
	}{
		{statuses: []int{200, 500}, failingFor: time.Hour},
		{statuses: []int{500, 200}, failingFor: time.Hour},
		{statuses: []int{200, 410}, failingFor: time.Hour, want: since + ", now gone"},
		{statuses: []int{410, 200}, failingFor: time.Hour, want: since + ", now gone"},
		{statuses: []int{410, 500}, failingFor: time.Hour, want: since + ", now gone"},
		{statuses: []int{500}, want: since},
		{statuses: []int{500}, failingFor: 3*day - time.Hour, want: since},
		{statuses: []int{500}, failingFor: 3*day + time.Second, want: since + ", now failing"},
		{statuses: []int{200}, failingFor: 3*day + time.Second},
		{before: []int{410}, statuses: []int{500}, failingFor: time.Hour, want: since},
		{before: []int{200}, statuses: []int{500}, failingFor: time.Hour, want: since},
		{statuses: []int{200}, failingFor: time.Hour, disabled: webhooks.ByCustomer, want: since + ", customer"},
	} {
		c := f.customer(attemptedURL)
		f.Exec(t, `
UPDATE webhook_endpoints SET failing_since = now() - NULLIF($2::double precision, 0) * interval '1 second',
  disabled_reason = NULLIF($3, '') WHERE account_id = $1`, c.account, test.failingFor.Seconds(), test.disabled)
		var group []outcome
		statuses := slices.Concat(test.before, test.statuses)
		for i, a := range c.attempts(len(statuses)) {
			r, url := result{status: statuses[i]}, attemptedURL
			if r.status != 200 {
				r.err = webhooks.ErrorStatus
			}
			if i < len(test.before) {
				url = "https://before.example/"
			}
			group = append(group, newOutcome(a, url, r))
		}
		must(t, f.d.write(t.Context(), group))
		var got string
		must(t, f.Pool.QueryRow(t.Context(), `
SELECT CASE WHEN failing_since <= now() - $2::float * interval '1 second' THEN 'failing since then' ELSE '' END
  || COALESCE(CASE WHEN updated_at > created_at THEN ', now ' ELSE ', ' END || disabled_reason, '')
FROM webhook_endpoints WHERE account_id = $1`, c.account, test.failingFor.Seconds()).Scan(&got))
		equal(t, test.want, got, fmt.Sprintf("after %+v", test))
	}
}

// TestLateOutcome: the outcome of an attempt that began before its event was resent, or that is written again,
// changes nothing.
func TestLateOutcome(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	a := c.attempts(1)[0]
	must(t, f.write(timedOut, a))
	must(t, f.write(timedOut, a))
	f.rows(1, `webhook_deliveries WHERE status = 'pending' AND attempts = 1`)
	must(t, c.resend(f.Webhooks, a))
	must(t, f.write(result{status: 200}, a))
	a.attempts = 1
	must(t, f.write(result{status: 200}, a))
	f.rows(1, `webhook_deliveries WHERE status = 'pending' AND attempts = 0`)
}

// webhooks returns Webhooks that do something before a statement.
func (f *fixture) webhooks(pool *pgxpool.Pool, sql string, do func()) *webhooks.Webhooks {
	f.t.Helper()
	pool = storetest.WithTracer(f.t, pool, before(sql, do))
	return webhooks.New(webhooks.Config{Pool: pool, Master: f.master, NewID: store.NewID})
}

// resend queues a delivery again.
func (c *customer) resend(w *webhooks.Webhooks, a *delivery) error {
	_, err := w.Resend(c.f.t.Context(), c.account, c.endpoint.ID, a.event, func(string) bool { return true })
	return err
}

// TestResendWhileOutcomesAreWritten: a resend and the transaction that writes outcomes both lock the endpoint before
// the delivery, so that they do not deadlock.
func TestResendWhileOutcomesAreWritten(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	a := c.attempts(1)[0]
	var written <-chan error
	w := f.webhooks(f.Pool, "INSERT INTO webhook_deliveries", func() { // the endpoint is locked
		written = f.beginWrite(timedOut, a)
	})
	must(t, c.resend(w, a))
	must(t, <-written)
}

// TestResendWhileEventIsDeleted: the event of a resend is purged after it was read.
func TestResendWhileEventIsDeleted(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	w := f.webhooks(f.Pool, "INSERT INTO webhook_deliveries", func() { f.Exec(t, `DELETE FROM events`) })
	if err := c.resend(w, c.attempts(1)[0]); !errors.Is(err, events.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestOutcomeOfMovedDelivery: an outcome is written also where another transaction has changed the delivery without a
// new attempt.
func TestOutcomeOfMovedDelivery(t *testing.T) {
	f := newFixture(t)
	a := f.customer(attemptedURL).attempts(1)[0]
	tx := storetest.Begin(t, f.Pool, `UPDATE webhook_deliveries SET next_attempt_at = now()`)
	written := f.beginWrite(result{status: 200}, a)
	must(t, tx.Commit(t.Context()))
	must(t, <-written)
	f.rows(1, `webhook_deliveries WHERE status = 'delivered'`)
}

// TestOrderOfLocks: outcomes lock deliveries in the order of their keys, as a purge does.
func TestOrderOfLocks(t *testing.T) {
	webhookstest.SkipOnCitus(t)
	f := newFixture(t)
	attempts := f.customer(attemptedURL).attempts(2)
	const lock = `SELECT FROM webhook_deliveries WHERE event_id = $1 FOR UPDATE NOWAIT`
	tx := storetest.Begin(t, f.Pool, lock, attempts[0].event)
	written := f.beginWrite(result{status: 200}, attempts[1], attempts[0])
	if _, err := tx.Exec(t.Context(), lock, attempts[1].event); err != nil {
		t.Errorf("the second delivery was locked before the first: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-written)
}

// TestStoppedProcess: where a process stops inside a change of an endpoint, outcomes and events wait for the change's
// locks for some seconds only.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		at     string // the statement before which the process stops
		change func(context.Context, *webhooks.Webhooks, *customer) error
	}{
		{"INSERT INTO webhook_endpoints", func(ctx context.Context, w *webhooks.Webhooks, c *customer) error {
			_, _, err := w.Create(ctx, c.account, "https://b.example/", "", []string{webhooks.All})
			return err
		}},
		{"UPDATE webhook_endpoints", func(ctx context.Context, w *webhooks.Webhooks, c *customer) error {
			_, err := w.Update(ctx, c.account, c.endpoint.ID, webhooks.Change{Description: new("b")}, maySendAll)
			return err
		}},
	} {
		t.Run(test.at, func(t *testing.T) {
			f := newFixture(t)
			c := f.customer(attemptedURL)
			a := c.attempts(1)[0]
			stopped, resume, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			w := f.webhooks(storetest.WithIdleBound(t, f.Pool), test.at, func() {
				close(stopped)
				<-resume
			})
			goOn := sync.OnceFunc(func() { close(resume) })
			t.Cleanup(goOn)
			go func() { ended <- test.change(t.Context(), w, c) }()
			select {
			case <-stopped:
			case err := <-ended:
				t.Fatalf("the change did not stop: %v", err)
			}
			storetest.Eventually(t, "the outcome is written", func() bool { return f.write(timedOut, a) == nil })
			storetest.Eventually(t, "an event is recorded", func() bool {
				_, err := c.tryRecord(1)
				return err == nil
			})
			goOn()
			if err := <-ended; err == nil {
				t.Error("the change was made")
			}
		})
	}
}
