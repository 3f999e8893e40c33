// Package results reads the jobs of a run with their answers, in pages. Packages gateway and cmd/aiv call it.
//
// It owns no table. It reads job_results and job_leases, which package jobs owns, and measurement_runs, which package
// runs owns.
package results

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/runs"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
)

// Statuses are the states of a job.
var Statuses = []string{"queued", "running", "completed", "failed", "canceled"}

// A Result is a job as the route GET /v1/runs/{id}/results shows it.
type Result struct {
	Key          jobs.Key
	ModelID      string
	QuestionID   string
	Repetition   int
	Status       string // one of Statuses
	Attempts     int
	Answer       *answers.Answer // nil unless completed, or deleted for its age
	ErrorCode    *string         // nil unless failed
	ErrorMessage *string
	StartedAt    *time.Time
	FinishedAt   *time.Time
}

// A Filter selects among the jobs of a run. Empty members select all.
type Filter struct {
	Statuses   []string
	ModelID    string
	QuestionID string

	// Choose returns the first n ordinals after the given one that another package selects; nil: all jobs are selected.
	Choose func(ctx context.Context, db store.Querier, after int32, n int) ([]int32, error)
}

// maxPageBytes bounds the JSON of a page's items.
const maxPageBytes = 4 << 20

// List returns a page of the jobs of a run after the ordinal after, in the run's order: by model, question and
// repetition. The page has at least one item, and ends early if its JSON would exceed 4 MiB. more reports whether
// other jobs follow. List returns runs.ErrNotFound if the account has no such run.
func List(ctx context.Context, db store.Querier, account, run store.ID, f Filter, after int32, limit int) (page []Result, more bool, err error) {
	l := listing{db: db, account: account, run: run, filter: f, limit: limit, step: maxCandidates}
	return l.read(ctx, after)
}

// maxCandidates bounds the jobs whose states one statement reads, unless a page has more. It is also about how many
// jobs the first statement searches, unless one model has more.
const maxCandidates = 4000

// A listing reads a page.
type listing struct {
	db                store.Querier
	account, run      store.ID
	filter            Filter
	limit, step       int      // step is maxCandidates, fewer in tests
	models, questions []string // of the run, in the order of its jobs
	repetitions       int32
	statuses          []string // of the filter, as far as jobs of the run have them
	all               bool     // every job of the run has one of them
}

// includes reports whether the filter selects jobs with a status.
func (l *listing) includes(status string) bool {
	return len(l.filter.Statuses) == 0 || slices.Contains(l.filter.Statuses, status)
}

// read reads windows of ordinals until the page is full: it looks for candidates, reads their states, and keeps those
// with a status of the filter. Each window is four times as large as the one before.
func (l *listing) read(ctx context.Context, after int32) (page []Result, more bool, err error) {
	if err := l.readRun(ctx); err != nil || len(l.statuses) == 0 {
		return nil, false, err
	}
	sizes := []int{}
	// n is the number of candidates to look for; one more than the limit shows whether others follow.
	n, window := l.limit+1, l.step
	// Repeat until the page is full: a window may have too few matches, and jobs may change between the two queries.
	for len(page) <= l.limit {
		spans := l.spans(after, window)
		if len(spans) == 0 {
			break
		}
		find := l.candidates
		if l.filter.Choose != nil {
			find = func(ctx context.Context, spans []span, n int) ([]int32, error) { return l.chosen(ctx, spans, after, n) }
		}
		ordinals, err := find(ctx, spans, n)
		if err != nil {
			return nil, false, err
		}
		found, foundSizes, err := l.states(ctx, ordinals)
		if err != nil {
			return nil, false, err
		}
		for i := range found {
			if l.includes(found[i].Status) {
				page, sizes = append(page, found[i]), append(sizes, foundSizes[i])
			}
		}
		// All of the window has been searched, unless n candidates were found before its end.
		if after = spans[len(spans)-1].last; len(ordinals) == n {
			after = ordinals[n-1]
		}
		n, window = max(n, min(4*n, l.step)), min(4*window, math.MaxInt32)
	}
	n = min(len(page), l.limit)
	// The page ends before an item with which it would be too large. sizes are upper bounds.
	bytes := 0
	for i := range n {
		if bytes += sizes[i]; bytes > maxPageBytes && i > 0 {
			n = i
			break
		}
	}
	more = n < len(page)
	page = page[:n:n]
	return page, more, l.readAnswers(ctx, page)
}

// readRun reads the run, and which statuses the filter can find.
func (l *listing) readRun(ctx context.Context) error {
	var total, running, completed, failed, canceled int
	err := l.db.QueryRow(ctx, selectRun, l.account, l.run).Scan(&l.models, &l.questions, &l.repetitions, &total, &running, &completed, &failed, &canceled)
	// The run does not exist or belongs to another account.
	if errors.Is(err, pgx.ErrNoRows) {
		return runs.ErrNotFound
	}
	if err != nil {
		return err
	}
	l.all = true
	// The counters are in the order of Statuses.
	for i, jobs := range []int{total - running - completed - failed - canceled, running, completed, failed, canceled} {
		switch status := Statuses[i]; {
		case jobs == 0:
		case l.includes(status):
			l.statuses = append(l.statuses, status)
		default:
			l.all = false
		}
	}
	return nil
}

// A span is a range of ordinals.
type span struct{ first, last int32 }

// spans returns the next ordinals of the filter's models and question after the given one, as spans of one model each.
// It stops when the spans have window or more ordinals together.
func (l *listing) spans(after int32, window int) (spans []span) {
	// first and last are indexes of questions in each model; last is exclusive.
	perModel, first, last := int32(len(l.questions))*l.repetitions, int32(0), int32(len(l.questions))
	if l.filter.QuestionID != "" {
		if first = int32(slices.Index(l.questions, l.filter.QuestionID)); first < 0 {
			return nil
		}
		last = first + 1
	}
	for i := range int32(len(l.models)) {
		// Ordinals count from 1, by model, question and repetition.
		s := span{max(after, i*perModel+first*l.repetitions) + 1, i*perModel + last*l.repetitions}
		if s.first > s.last || l.filter.ModelID != "" && l.filter.ModelID != l.models[i] {
			continue
		}
		spans = append(spans, s)
		if window -= int(s.last - s.first + 1); window <= 0 {
			break
		}
	}
	return spans
}

// candidates returns the first n ordinals of the spans whose jobs have one of the statuses, or have changed since the
// run was read. It finds them by the rows of such jobs, so that not every job of a large run is read.
func (l *listing) candidates(ctx context.Context, spans []span, n int) (ordinals []int32, err error) {
	// If all jobs of the run have one of the statuses, no row needs to be read.
	found := spans
	if !l.all {
		var first, last []int32
		for _, s := range spans {
			first, last = append(first, s.first), append(last, s.last)
		}
		found, err = store.Collect(ctx, l.db, func(row pgx.CollectableRow) (s span, err error) {
			err = row.Scan(&s.first, &s.last)
			return s, err
		}, selectSpans, l.account, l.run, first, last, n, l.statuses)
		if err != nil {
			return nil, err
		}
		// The statement returns them unordered, and more than n together.
		slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	}
	for _, s := range found {
		for o := s.first; o <= s.last && len(ordinals) < n; o++ {
			ordinals = append(ordinals, o)
		}
	}
	return ordinals, nil
}

// chosen returns the first n ordinals of the spans that the filter's Choose selects. Choose does not know the other
// filters, so more than n may have to be read.
func (l *listing) chosen(ctx context.Context, spans []span, after int32, n int) (ordinals []int32, err error) {
	for len(ordinals) < n {
		found, err := l.filter.Choose(ctx, l.db, after, l.step)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if after = o; len(ordinals) < n && slices.ContainsFunc(spans, func(s span) bool { return s.first <= o && o <= s.last }) {
				ordinals = append(ordinals, o)
			}
		}
		// Choose has no more ordinals, or the next ones are beyond the spans.
		if len(found) < l.step || after > spans[len(spans)-1].last {
			break
		}
	}
	return ordinals, nil
}

// position returns what a job measures. Jobs are numbered from 1 by model, then question, then repetition.
func (l *listing) position(ordinal int32) (model, question string, repetition int) {
	at := ordinal - 1
	questions := int32(len(l.questions))
	return l.models[at/l.repetitions/questions], l.questions[at/l.repetitions%questions], int(at%l.repetitions) + 1
}

// states returns the jobs without their answers, and an upper bound of the JSON size of each.
func (l *listing) states(ctx context.Context, ordinals []int32) ([]Result, []int, error) {
	if len(ordinals) == 0 {
		return nil, nil, nil
	}
	rows, err := l.db.Query(ctx, selectStates, l.account, l.run, ordinals)
	if err != nil {
		return nil, nil, err
	}
	results, sizes := make([]Result, len(ordinals)), make([]int, len(ordinals))
	for rows.Next() {
		var no int
		var answer *int // its length
		var r Result
		if err := rows.Scan(&no, &r.Status, &r.Attempts, &r.StartedAt, &r.FinishedAt, &r.ErrorCode, &r.ErrorMessage, &answer); err != nil {
			return nil, nil, err
		}
		r.Key = jobs.Key{Account: l.account, Run: l.run, Ordinal: ordinals[no-1]}
		r.ModelID, r.QuestionID, r.Repetition = l.position(ordinals[no-1])
		// 650 bytes are enough for the names of members, ids, times and numbers.
		size := 650 + len(r.ModelID) + len(r.QuestionID)
		if answer != nil {
			size += *answer
		}
		if r.ErrorMessage != nil {
			size += 6 * len(*r.ErrorMessage) // each byte an escape
		}
		results[no-1], sizes[no-1] = r, size
	}
	if rows.Err() == nil && rows.CommandTag().RowsAffected() == 0 { // the run was deleted since it was read
		return nil, nil, runs.ErrNotFound
	}
	return results, sizes, rows.Err()
}

// readAnswers adds the answers to the completed jobs of a page. An answer that was deleted stays nil.
func (l *listing) readAnswers(ctx context.Context, page []Result) error {
	var ordinals []int32
	// index has the indexes in page by ordinal.
	index := make(map[int32]int)
	for i := range page {
		if page[i].Status == "completed" {
			ordinals = append(ordinals, page[i].Key.Ordinal)
			index[page[i].Key.Ordinal] = i
		}
	}
	if len(ordinals) == 0 {
		return nil
	}
	rows, err := l.db.Query(ctx, selectAnswers, l.account, l.run, ordinals)
	if err != nil {
		return err
	}
	var ordinal int32
	var stored *string
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &stored}, func() (err error) {
		if stored != nil {
			page[index[ordinal]].Answer, err = answers.Decode(*stored)
		}
		return err
	})
	return err
}
