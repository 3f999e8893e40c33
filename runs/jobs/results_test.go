package jobs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store"
)

// TestPagesOfJobs: the pages of a run's jobs, as they were settled or canceled. Package results tests the filters.
func TestPagesOfJobs(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a := s.account(t)
	run := s.createRun(t, a, []string{"m1", "m2"}, 3, 2)
	all := claim(t, d, 9)
	settle(t, d, jobs.Completed, all[0], all[4], all[6])
	settle(t, d, jobs.Failed, all[1], all[7])
	settle(t, d, jobs.Released, all[2])

	list := func(f results.Filter, limit int) (pages string) {
		for after := int32(0); ; {
			page, more, err := results.List(t.Context(), s.pool, a, run, f, after, limit)
			must(t, err)
			for _, r := range page {
				pages += fmt.Sprintf(" %d%s%d", r.Key.Ordinal, r.Status[:1], r.Attempts)
				if after = r.Key.Ordinal; (r.Answer != nil) != (r.Status == "completed") || (r.ErrorCode != nil) != (r.Status == "failed") {
					t.Errorf("%+v", r)
				}
			}
			if !more {
				return strings.TrimSpace(pages)
			}
			pages += " |"
		}
	}
	equal(t, "1c1 2f1 3q1 4r1 5c1 | 6r1 7c1 8f1 9r1 10q0 | 11q0 12q0", list(results.Filter{}, 5))
	s.cancel(t, run)
	var canceled []results.Result
	for _, swept := range []bool{false, true} {
		if swept { // a canceled run stays as it is when its leases are deleted
			sweep(t, d)
			equal(t, 0, s.count(t, `SELECT count(*) FROM job_leases`), "leases of a canceled run are left")
		}
		equal(t, "1c1 2f1 3c1 4c1 5c1 6c1 7c1 8f1 9c1 10c0 11c0 12c0", list(results.Filter{}, 100))
		page, _, err := results.List(t.Context(), s.pool, a, run, results.Filter{Statuses: []string{"canceled"}}, 0, 100)
		must(t, err)
		equal(t, 7, len(page), "canceled jobs")
		if swept {
			equal(t, canceled, page, "canceled jobs after a sweep")
		}
		canceled = page
	}
	if _, _, err := results.List(t.Context(), s.pool, store.NewID(), run, results.Filter{}, 0, 1); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("another account's run: got %v", err)
	}
}

// TestLargeAnswersAreCompressed: large answers are compressed with LZ4 if the server can.
func TestLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	large := settlement(claim(t, d, 1)[0], jobs.Completed)
	large.Answer.Text = strings.Repeat("the answer of a model ", 300)
	settleAs(t, d, jobs.Reporter{}, large)
	if n := s.count(t, `
SELECT count(*) FROM job_results, pg_settings WHERE pg_settings.name = 'default_toast_compression'
  AND pg_column_compression(answer) = CASE WHEN 'lz4' = ANY (enumvals) THEN 'lz4' ELSE 'pglz' END`); n != 1 {
		t.Error("the answer is compressed in another way")
	}
}

// TestPageOfLargeAnswers: a page ends before its items are larger than 4 MiB, and has one at least.
func TestPageOfLargeAnswers(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a := s.account(t)
	run := s.createRun(t, a, []string{"m1"}, 6, 1)
	var settlements []jobs.Settlement
	claimed := claim(t, d, 6)
	for i, size := range []int{5 << 20, 2 << 20, 2<<20 - 2000, 10, 4<<20 - 10_000} {
		w := settlement(claimed[i], jobs.Completed)
		w.Answer.Text = strings.Repeat("x", size)
		settlements = append(settlements, w)
	}
	failed := settlement(claimed[5], jobs.Failed)
	failed.ErrorMessage = strings.Repeat("\x01", 2048) // in JSON six times as long
	settleAs(t, d, jobs.Reporter{}, append(settlements, failed)...)
	var pages []int
	for after, more := int32(0), true; more; {
		var page []results.Result
		var err error
		page, more, err = results.List(t.Context(), s.pool, a, run, results.Filter{}, after, 200)
		must(t, err)
		after = page[len(page)-1].Key.Ordinal
		pages = append(pages, len(page))
	}
	equal(t, []int{1, 2, 2, 1}, pages)
}
