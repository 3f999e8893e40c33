package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aiv/insights/webhooks"
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
		equal(t, test.want, storetest.Value[string](t, f.Pool, `
SELECT CASE WHEN failing_since <= now() - $2::float * interval '1 second' THEN 'failing since then' ELSE '' END
  || COALESCE(CASE WHEN updated_at > created_at THEN ', now ' ELSE ', ' END || disabled_reason, '')
FROM webhook_endpoints WHERE account_id = $1`, c.account, test.failingFor.Seconds()), fmt.Sprintf("after %+v", test))
	}
}

// TestLateOutcome: what a delivery reports after an attempt without a response. The outcome of an attempt that began
// before its event was resent, or that is written again, changes nothing.
func TestLateOutcome(t *testing.T) {
	f := newFixture(t)
	c := f.customer(attemptedURL)
	a := c.attempts(1)[0]
	must(t, f.write(timedOut, a))
	must(t, f.write(timedOut, a))
	f.Rows(t, 1, `webhook_deliveries WHERE status = 'pending' AND attempts = 1 AND last_status IS NULL AND last_error = 'timeout'
  AND next_attempt_at - created_at >= interval '4 seconds'`)
	_, err := f.Resend(t.Context(), c.account, c.endpoint.ID, a.event, func(string) bool { return true })
	must(t, err)
	must(t, f.write(result{status: 200}, a))
	a.attempts = 1
	must(t, f.write(result{status: 200}, a))
	f.Rows(t, 1, `webhook_deliveries WHERE status = 'pending' AND attempts = 0`)
}
