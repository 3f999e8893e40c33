package runs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// meter gives the site's credential a quota of the month or a bound of unfinished jobs.
func (s *site) meter(quota, maxUnfinished *int64) {
	c := *s.credential
	c.JobsPerMonth, c.MaxUnfinishedJobs = quota, maxUnfinished
	s.credential = &c
}

// TestQuotaIsExact fills a quota from two processes at once, with runs of 1 to 3 jobs: no job too many is created, and
// no run that fits is refused.
func TestQuotaIsExact(t *testing.T) {
	s := newSite(t)
	const quota = 50
	s.meter(new(int64(quota)), nil)
	processes := []*runs.Runs{s.process(t, ""), s.process(t, "")}
	storetest.AtOnce(64, func(i int) {
		_, err := processes[i%2].Create(t.Context(), s.request(fmt.Sprint(i), 1, 1+i%3, 1))
		e, exceeded := errors.AsType[*runs.QuotaError](err)
		if exceeded && e.Remaining >= e.Jobs || err != nil && !exceeded {
			t.Errorf("run %d: %v", i, err)
		}
	})
	for i := range 3 { // runs of one job fill what remains
		if _, err := processes[0].Create(t.Context(), s.request(fmt.Sprintf("rest %d", i), 1, 1, 1)); err != nil {
			break
		}
	}
	equal(t, quota, s.count(t, `SELECT jobs_ordered FROM account_months`), "jobs are counted")
	equal(t, quota, s.count(t, `SELECT count(*) FROM measurement_jobs`), "jobs are written")
	s.verify(t)
}

// TestQuotaAndReplay: a run that does not fit writes nothing and leaves its key free; a replay is never refused.
func TestQuotaAndReplay(t *testing.T) {
	s := newSite(t)
	s.meter(new(int64(6)), nil)
	r := s.process(t, "")
	first := create(t, r, s.request("first", 1, 2, 3))
	for range 2 {
		refuses(t, r, s.request("second", 1, 1, 1), 0, false)
		replays(t, r, s.request("first", 1, 2, 3), first)
	}
	fails(t, r, s.request("first", 1, 2, 1), runs.ErrKeyReused, "the key with another request")
	s.meter(new(int64(5)), nil) // more is used
	refuses(t, r, s.request("second", 1, 1, 1), 0, false)
	s.meter(nil, new(int64(5)))
	refuses(t, r, s.request("second", 1, 1, 1), 0, true)
	s.meter(new(int64(7)), nil)
	create(t, r, s.request("second", 1, 1, 1)) // its key is free
	s.meter(nil, nil)
	create(t, r, s.request("third", 1, 1, 1)) // counted without a quota too
	s.meter(new(int64(9)), nil)
	refuses(t, r, s.request("fourth", 1, 2, 1), 1, false)
	s.wantRuns(t, 3)
	n := r.Stats()
	got := []uint64{n.Created, n.Jobs, n.Replayed, n.Refused, n.Conflicts, n.Failed}
	equal(t, []uint64{3, 8, 2, 5, 1, 0}, got, "requests created, their jobs, and requests replayed, refused, in conflict and failed")
}

// TestUnfinishedJobs: the bound of unfinished jobs holds for runs of any size. The finished jobs of a run that is still
// running make room, and so does a run that ends.
func TestUnfinishedJobs(t *testing.T) {
	s := newSite(t)
	s.meter(nil, new(int64(6000)))
	r := s.process(t, "")
	large := create(t, r, s.request("large", 10, 60, 10)).RunID
	refuses(t, r, s.request("small", 1, 1, 1), 0, true)
	s.exec(t, `UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_completed = 6, jobs_failed = 3,
		jobs_returned = 7 WHERE id = $1`, large)
	refuses(t, r, s.request("ten", 1, 10, 1), 9, true)
	create(t, r, s.request("nine", 1, 9, 1))
	queue, err := runs.ReadQueue(t.Context(), s.pool)
	must(t, err)
	equal(t, []int64{2, 7 + 9}, []int64{queue.OpenRuns, queue.QueuedJobs}, "open runs, and their jobs that are neither running nor final")
	backlog, err := runs.ReadBacklog(t.Context(), s.pool, 1)
	must(t, err)
	if backlog.Runs != 1 || backlog.Oldest <= 0 {
		t.Errorf("%+v, want one run, the bound", backlog)
	}
	// Two runs that fit together only if finished jobs do not count.
	s.meter(nil, new(int64(6020)))
	createAtOnce(t, r, 2, func(i int) *runs.CreateRequest { return s.request(fmt.Sprint("together ", i), 1, 9, 1) })
	must(t, ignore(r.Cancel(t.Context(), s.credential.AccountID, large)))
	create(t, r, s.request("large again", 10, 60, 9))
	s.wantRuns(t, 5)
}

// TestDefaultBound: an account whose plan sets no bound is refused what exceeds the default, even if it only sends
// large runs, and admitted again when jobs have ended.
func TestDefaultBound(t *testing.T) {
	t.Parallel()
	for name, jobs := range map[string]int64{"small": 1, "large": 5_100} {
		t.Run(name, func(t *testing.T) {
			s, r := newProcess(t)
			request := func(key string) *runs.CreateRequest { return s.request(key, 1, int(jobs+99)/100, min(jobs, 100)) }
			create(t, r, request("1"))
			s.exec(t, `UPDATE account_months SET jobs_ordered = $1`, runs.DefaultMaxUnfinishedJobs-jobs)
			create(t, r, request("2")) // fills the bound, and this process learns of it
			refuses(t, r, request("3"), 0, true)
			s.exec(t, `UPDATE account_months SET jobs_completed = $1`, jobs)
			create(t, r, request("3"))
		})
	}
}

// TestLockedMonth: a lock on one account's month delays no other account for long.
func TestLockedMonth(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]*int64{"with quotas": new(int64(10)), "without quotas": nil} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.meter(quota, nil)
			storetest.SetLockTimeout(t, s.pool, "2s")
			r := s.process(t, "&lock_timeout=60s")
			create(t, r, s.request("first", 1, 1, 1))
			month := begin(t, s.pool, `SELECT FROM account_months WHERE account_id = $1 FOR UPDATE`, s.credential.AccountID)
			if quota != nil {
				refuses(t, r, s.request("large", 1, 1, 10), 9, false) // without waiting
			}
			second := s.request("second", 1, 1, 1)
			wait := goCreate(t, r, second)
			s.waiting(t, "transactionid")
			c := *s.customer(t)
			c.JobsPerMonth = quota
			create(t, r, requestOf(&c, "other", 1, 1, 1))
			must(t, month.Rollback(t.Context()))
			err := wait()
			if storetest.OnCitus() && store.IsLockTimeout(err) { // a cluster gives up on locks sooner
				err = ignore(r.Create(t.Context(), second))
			}
			must(t, err)
			s.wantRuns(t, 3)
		})
	}
}

// TestQuotaOfEachMonth: what was ordered before the month began, at midnight UTC, leaves the quota of the month
// untouched.
func TestQuotaOfEachMonth(t *testing.T) {
	s := newSite(t)
	s.meter(new(int64(6)), nil)
	r := s.process(t, "&timezone=America%2FNew_York")
	create(t, r, s.request("last month", 1, 2, 3))
	refuses(t, r, s.request("too many", 1, 1, 1), 0, false)
	now := time.Now().UTC()
	s.backdate(t, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-time.Microsecond))
	create(t, r, s.request("too many", 1, 1, 1))
	create(t, r, s.request("the rest", 1, 1, 5))
	refuses(t, r, s.request("one more", 1, 1, 1), 0, false)
	s.wantRuns(t, 3)
}

// TestUsageOfMonths: a running run belongs to the month of its creation to the microsecond, whatever the time zone of
// the session is.
func TestUsageOfMonths(t *testing.T) {
	s := newSite(t)
	r := s.process(t, "&timezone=America%2FNew_York")
	for i, created := range []string{"2026-01-31 23:59:59.999999Z", "2026-02-01Z", "2026-02-28 23:59:59.999999Z",
		"2026-03-01Z", "2026-03-31 23:59:59.999999Z", "2026-04-01Z"} {
		s.exec(t, `UPDATE measurement_runs SET created_at = $2, started_at = $2, status = 'running', jobs_completed = $3
			WHERE id = $1`, create(t, r, s.request(created, 1, 1, 10)).RunID, created, i+1)
	}
	s.exec(t, `UPDATE measurement_runs SET created_at = $2, started_at = $2, finished_at = $2, status = 'completed',
		jobs_completed = 10 WHERE id = $1`, create(t, r, s.request("final", 1, 1, 10)).RunID, "2026-01-15Z") // counted by account_months
	var got []int64
	for month := time.January; month <= time.April; month++ {
		u, err := r.MonthOf(t.Context(), s.credential.AccountID, new(time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)))
		must(t, err)
		got = append(got, u.Completed)
	}
	equal(t, []int64{1, 2 + 3, 4 + 5, 6}, got, "completed jobs by month")
}
