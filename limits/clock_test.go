package limits

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"
)

// clock is a site whose clock the test sets.
type clock struct{ *site }

func newClock(t *testing.T) clock {
	t.Helper()
	c := clock{newSite(t)}
	c.url += "&search_path=clock,pg_catalog,public"
	c.exec(t, `
		CREATE SCHEMA clock;
		CREATE TABLE clock.present (t timestamptz);
		INSERT INTO clock.present VALUES (now());
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT t FROM clock.present'`)
	return c
}

func (c clock) to(t *testing.T, present string) {
	t.Helper()
	c.exec(t, `UPDATE clock.present SET t = $1::text::timestamptz`, present)
}

// TestClockSteps: the count belongs to the minute, whatever way the database's clock came to it.
func TestClockSteps(t *testing.T) {
	c := newClock(t)
	key := c.key(t, 3).Hash
	processes := []*Limiter{c.process(t), c.process(t)}
	for _, step := range []struct {
		name, clock string
		admitted    []bool
		remaining   int
		left        time.Duration
	}{
		{"a new minute", "2030-01-01 12:00:30Z", []bool{true, true}, 1, 30 * time.Second},
		{"the clock steps forward", "2030-01-01 13:00:00Z", []bool{true, true, true, false, false}, 0, time.Minute},
		{"and back: the minute has the count that it had", "2030-01-01 12:00:59.5Z", []bool{true, false, false}, 0, 500 * time.Millisecond},
		{"the next minute is open", "2030-01-01 12:01:00Z", []bool{true}, 2, time.Minute},
		{"the clock steps back into a spent minute", "2030-01-01 12:00:10Z", []bool{false, false}, 0, 50 * time.Second},
		{"and forward into one that is not full", "2030-01-01 12:01:20Z", []bool{true, true, false}, 0, 40 * time.Second},
		{"the next spent minute comes", "2030-01-01 13:00:59Z", []bool{false}, 0, time.Second},
		{"and ends", "2030-01-01 13:01:00Z", []bool{true}, 2, time.Minute},
	} {
		c.to(t, step.clock)
		for i, want := range step.admitted {
			a, err := processes[i%2].Admit(t.Context(), key, nil)
			must(t, err)
			equal(t, want, a.Admitted, step.name, ": request ", i, " is admitted")
			if i < len(step.admitted)-1 {
				continue
			}
			if a.Window.Remaining != step.remaining || a.Window.Left != step.left {
				t.Errorf("%s: %d remain for %v, want %d for %v", step.name, a.Window.Remaining, a.Window.Left, step.remaining, step.left)
			}
		}
	}
}

// TestSpentMinuteIsNotWritten: once a process knows that a minute is spent, it refuses without a write, until the
// minute or the credential changes. A changed limit does not change what the minute has admitted.
func TestSpentMinuteIsNotWritten(t *testing.T) {
	c := newClock(t)
	k, l, early := c.key(t, 2), c.process(t), 0
	admit := func(want ...bool) {
		t.Helper()
		for i, admitted := range want {
			a, err := l.Admit(t.Context(), k.Hash, func(*auth.Credential) { early++ })
			must(t, err)
			equal(t, admitted, a.Admitted, "request ", i, " is admitted")
		}
	}
	spent := func() {
		t.Helper()
		const version = `SELECT string_agg(xmin::text, ' ' ORDER BY window_start) FROM api_rate_limit_buckets`
		before, begun := storetest.Value[string](t, c.pool, version), early
		admit(false, false)
		equal(t, []any{before, begun}, []any{storetest.Value[string](t, c.pool, version), early}, "versions of the rows, and early calls")
	}
	c.to(t, "2030-01-01 12:00:00Z")
	admit(true, true)
	spent()
	c.set(t, k, auth.Terms{RateLimit: new(3)})
	admit(true, false)
	c.set(t, k, auth.Terms{RateLimit: new(2)})
	admit(false, false)
	storetest.Verify(t, c.pool, Invariants()...)
	c.set(t, k, auth.Terms{RateLimit: new(4)})
	equal(t, []string{"0 true", "0 false"}, together(t, l, k, k), "two requests where one has room")
	c.to(t, "2030-01-01 12:01:00Z") // earlier than the process expects
	admit(true, true, true, true)
	spent()
	must(t, ignore(c.admin.RevokeKey(t.Context(), k.id)))
	unknown(t, l, k, "a revoked key")
}

// TestExpiredKey: a key that expires in a minute is not valid any more, whether the minute is spent or not. Another key
// of the batch is counted once.
func TestExpiredKey(t *testing.T) {
	c := newClock(t)
	other, l := c.key(t, 1000), c.process(t)
	end := time.Date(2030, 1, 1, 12, 0, 30, 0, time.UTC)
	for limit, want := range map[int]string{1: "0 false", 1000: "998 true"} {
		expires := c.key(t, limit)
		c.set(t, expires, auth.Terms{ExpiresAt: &end})
		c.to(t, "2030-01-01 12:00:00Z")
		equal(t, want, together(t, l, expires, expires)[1])
		before := admitted(t, l, other).Window.Remaining
		c.to(t, "2030-01-01 12:00:30Z")
		equal(t, []string{"", fmt.Sprint(before-1, " true")}, together(t, l, expires, other), "limit ", limit)
	}
}

// TestDisconnectIsCounted: a request counts although its caller gives up.
func TestDisconnectIsCounted(t *testing.T) {
	c := newClock(t)
	limiter, key := c.process(t), c.key(t, 1000)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	admitted(t, limiter, key)
	if _, err := limiter.Admit(gone, key.Hash, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	equal(t, 997, admitted(t, limiter, key).Window.Remaining, "remaining after three requests") // counted in a later batch
}

// TestPurgeUsesTheEarlierClock: counts older than a day are deleted, by the earlier of both clocks, and none if these
// disagree.
func TestPurgeUsesTheEarlierClock(t *testing.T) {
	c := newClock(t)
	pool := open(t, c.url)
	c.exec(t, `
		INSERT INTO api_rate_limit_buckets
		SELECT $1, $2, date_bin('1 minute', now(), 'epoch') - make_interval(mins => m), 1, 1, 1
		FROM unnest(ARRAY[0, 1, 1438, 1442, 1443, 3000]) m`, c.account, c.key(t, 1).id)
	for _, test := range []struct {
		ahead  time.Duration // of the database's clock
		rows   int64
		skewed bool
	}{
		{48 * time.Hour, 0, true},
		{-2 * time.Minute, 0, true},
		{30 * time.Second, 3, false},
		{0, 0, false},
	} {
		c.to(t, time.Now().Add(test.ahead).Format(time.RFC3339Nano))
		rows, err := Purge(t.Context(), pool)
		_, skewed := errors.AsType[*store.ClockError](err)
		if rows != test.rows || skewed != test.skewed || err != nil && !skewed {
			t.Errorf("a clock %v ahead: got %d, %v, want %d rows", test.ahead, rows, err, test.rows)
		}
	}
	equal(t, 3, c.count(t, `SELECT count(*) FROM api_rate_limit_buckets`), "rows are left")
}
