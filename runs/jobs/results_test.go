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

	"github.com/google/go-cmp/cmp"
)

// TestPagesOfJobsByFilter: the pages of a run's jobs, as they were settled or canceled. Package results tests all filters.
func TestPagesOfJobsByFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
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
	for _, test := range []struct {
		filter results.Filter
		limit  int
		want   string
	}{
		{results.Filter{}, 5, "1c1 2f1 3q1 4r1 5c1 | 6r1 7c1 8f1 9r1 10q0 | 11q0 12q0"},
		{results.Filter{Statuses: []string{"completed"}}, 2, "1c1 5c1 | 7c1"},
		{results.Filter{Statuses: []string{"queued"}}, 2, "3q1 10q0 | 11q0 12q0"},
		{results.Filter{Statuses: []string{"running", "failed"}}, 3, "2f1 4r1 6r1 | 8f1 9r1"},
		{results.Filter{QuestionID: "q3", ModelID: "m1"}, 3, "5c1 6r1"},
	} {
		if got := list(test.filter, test.limit); got != test.want {
			t.Errorf("%+v: %s, want %s", test.filter, got, test.want)
		}
	}
	s.cancel(t, run)
	var canceled []results.Result
	for _, swept := range []bool{false, true} {
		if swept { // a canceled run stays as it is when its leases are deleted
			sweep(t, d)
			s.check(t)
			if n := s.count(t, `SELECT count(*) FROM job_leases`); n > 0 {
				t.Errorf("%d leases of a canceled run are left", n)
			}
		}
		if diff := cmp.Diff("1c1 2f1 3c1 4c1 5c1 6c1 7c1 8f1 9c1 10c0 11c0 12c0", list(results.Filter{}, 100)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff("3c1 4c1 6c1 9c1 | 10c0 11c0 12c0", list(results.Filter{Statuses: []string{"canceled"}}, 4)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff("1c1 5c1 7c1", list(results.Filter{Statuses: []string{"completed"}}, 4)); diff != "" {
			t.Error(diff)
		}
		page, _, err := results.List(t.Context(), s.pool, a, run, results.Filter{Statuses: []string{"canceled"}}, 0, 100)
		must(t, err)
		if diff := cmp.Diff(canceled, page); swept && diff != "" {
			t.Error(diff)
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
	s := newSite(t)
	d := s.dispatcher(t)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	large := settlement(claim(t, d, 1)[0], jobs.Completed)
	large.Answer.Text = strings.Repeat("the answer of a model ", 300)
	must(t, ignore(d.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{large})))
	if n := s.count(t, `
SELECT count(*) FROM job_results, pg_settings WHERE pg_settings.name = 'default_toast_compression'
  AND pg_column_compression(answer) = CASE WHEN 'lz4' = ANY (enumvals) THEN 'lz4' ELSE 'pglz' END`); n != 1 {
		t.Error("the answer is compressed in another way")
	}
}

// TestPageOfLargeAnswers: a page ends before its items are larger than 4 MiB, and has one at least.
func TestPageOfLargeAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
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
	settlements = append(settlements, failed)
	_, err := d.Settle(t.Context(), jobs.Reporter{}, settlements)
	must(t, err)
	var pages []int
	for after, more := int32(0), true; more; {
		var page []results.Result
		page, more, err = results.List(t.Context(), s.pool, a, run, results.Filter{}, after, 200)
		must(t, err)
		after = page[len(page)-1].Key.Ordinal
		pages = append(pages, len(page))
	}
	if diff := cmp.Diff([]int{1, 2, 2, 1}, pages); diff != "" {
		t.Error(diff)
	}
}
