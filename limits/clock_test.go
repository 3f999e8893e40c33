package limits_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/limits"
	"aiv/store"
	"aiv/store/storetest"
)

// clock is a database whose clock the test sets.
type clock struct {
	url  string
	pool *pgxpool.Pool
}

func newClock(t *testing.T) *clock {
	t.Helper()
	url := storetest.URL(t)
	c := &clock{url: url + "&search_path=clock,pg_catalog,public", pool: open(t, url)}
	must(t, ignore(c.pool.Exec(t.Context(), `
		CREATE SCHEMA clock;
		CREATE TABLE clock.present (t timestamptz);
		INSERT INTO clock.present VALUES (now());
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT t FROM clock.present'`)))
	return c
}

func (c *clock) set(t *testing.T, present string) {
	t.Helper()
	must(t, ignore(c.pool.Exec(t.Context(), `UPDATE clock.present SET t = $1::text::timestamptz`, present)))
}

// TestClockSteps: the count belongs to the minute, whatever way the database's clock came to it.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	key, _, _ := customer(t, c.pool, 3)
	processes := []*limits.Limiter{process(t, c.url), process(t, c.url)}
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
		c.set(t, step.clock)
		for i, want := range step.admitted {
			a, err := processes[i%2].Admit(t.Context(), key)
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
// minute or the credential changes.
func TestSpentMinuteIsNotWritten(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	key, issued, admin := customer(t, c.pool, 2)
	other, _ := anotherKey(t, admin, issued.AccountID, "other", new(1000))
	l := process(t, c.url)
	admit := func(key auth.Hash, admitted bool) {
		t.Helper()
		a, err := l.Admit(t.Context(), key)
		if err != nil || a.Admitted != admitted {
			t.Errorf("got %+v, %v, want admitted=%v", a, err, admitted)
		}
	}
	version := func() (version string) {
		t.Helper()
		err := c.pool.QueryRow(t.Context(), `SELECT string_agg(xmin::text, ' ' ORDER BY window_start) FROM api_rate_limit_buckets WHERE credential_id = $1`,
			issued.ID).Scan(&version)
		must(t, err)
		return version
	}
	refusedUnwritten := func() {
		t.Helper()
		before := version()
		admit(key, false)
		admit(other, true)
		admit(key, false)
		equal(t, before, version(), "versions of the rows after a refusal")
	}
	c.set(t, "2030-01-01 12:00:00Z")
	admit(key, true)
	admit(key, true)
	refusedUnwritten()

	must(t, ignore(admin.SetKey(t.Context(), issued.ID, auth.Terms{RateLimit: new(3)})))
	admit(key, true) // by the raised limit
	admit(key, false)
	c.set(t, "2030-01-01 12:01:00Z")
	admit(key, true) // in the next minute, though the process expects it later
	admit(key, true)
	admit(key, true)
	refusedUnwritten()
	must(t, ignore(admin.RevokeKey(t.Context(), issued.ID)))
	unknown(t, l, key, "a revoked key")
}

// TestExpiredKey: a key that expires in a minute is not valid any more, whether the minute is spent or not. Another key
// of the batch is counted once.
func TestExpiredKey(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	other, issued, admin := customer(t, c.pool, 1000)
	end := time.Date(2030, 1, 1, 12, 0, 30, 0, time.UTC)
	l := process(t, c.url)
	for i, limit := range []int{1, 1000} {
		key, expires := anotherKey(t, admin, issued.AccountID, "expires", &limit)
		must(t, ignore(admin.SetKey(t.Context(), expires.ID, auth.Terms{ExpiresAt: &end})))
		c.set(t, "2030-01-01 12:00:00Z")
		if a, err := l.AdmitTogether(t.Context(), []auth.Hash{key, key, other}); err != nil || a[1] == nil {
			t.Fatalf("limit %d: %v, %v", limit, a, err)
		}
		c.set(t, "2030-01-01 12:00:30Z")
		a, err := l.AdmitTogether(t.Context(), []auth.Hash{key, other})
		if err != nil || a[0] != nil || a[1] == nil || a[1].Window.Remaining != 998-2*i {
			t.Errorf("limit %d: got %+v, %v, want nothing for the expired key and %d remaining for the other", limit, a, err, 998-2*i)
		}
	}
}

// TestBatchOfOneKey: a batch with more requests than the limit has room for admits the first of them, and a changed
// limit does not change what the minute has admitted.
func TestBatchOfOneKey(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	key, issued, admin := customer(t, c.pool, 3)
	l := process(t, c.url)
	c.set(t, "2030-01-01 12:00:00Z")
	for _, step := range []struct {
		limit         int
		remaining     []int // of each request of a batch
		admitted      int   // of them
		used, highest int   // of the minute
	}{
		{3, []int{2, 1, 0, 0, 0}, 3, 3, 3},
		{2, []int{0, 0}, 0, 3, 3},
		{5, []int{1, 0, 0}, 2, 5, 5},
	} {
		must(t, ignore(admin.SetKey(t.Context(), issued.ID, auth.Terms{RateLimit: &step.limit})))
		a, err := l.AdmitTogether(t.Context(), slices.Repeat([]auth.Hash{key}, len(step.remaining)))
		must(t, err)
		for i, remaining := range step.remaining {
			if a[i].Admitted != (i < step.admitted) || a[i].Window.Remaining != remaining {
				t.Errorf("limit %d, request %d: got %+v, want %d remaining", step.limit, i, a[i], remaining)
			}
		}
		var used, highest int
		must(t, c.pool.QueryRow(t.Context(), `SELECT used, rate_limit FROM api_rate_limit_buckets`).Scan(&used, &highest))
		if used != step.used || highest != step.highest {
			t.Errorf("limit %d: the minute has used %d of at most %d, want %d of %d", step.limit, used, highest, step.used, step.highest)
		}
	}
}

// TestPurgeUsesTheEarlierClock: counts older than a day are deleted, by the earlier of both clocks, and none if these disagree.
func TestPurgeUsesTheEarlierClock(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	_, issued, _ := customer(t, c.pool, 1)
	pool := open(t, c.url)
	must(t, ignore(c.pool.Exec(t.Context(), `
		INSERT INTO api_rate_limit_buckets
		SELECT $1, $2, date_bin('1 minute', now(), 'epoch') - make_interval(mins => m), 1, 1, 1
		FROM unnest(ARRAY[0, 1, 1438, 1442, 1443, 3000]) m`, issued.AccountID, issued.ID)))
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
		c.set(t, time.Now().Add(test.ahead).Format(time.RFC3339Nano))
		rows, err := limits.Purge(t.Context(), pool)
		_, skewed := errors.AsType[*store.ClockError](err)
		if rows != test.rows || skewed != test.skewed || err != nil && !skewed {
			t.Errorf("a clock %v ahead: got %d, %v, want %d rows", test.ahead, rows, err, test.rows)
		}
	}
	equal(t, 3, count(t, c.pool, `SELECT count(*) FROM api_rate_limit_buckets`), "rows are left")
}
