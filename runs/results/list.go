// Package results reads the jobs of a run with what was answered, in pages. Packages gateway and main call it.
//
// It owns no table. It reads job_results and job_leases, which package jobs owns, and measurement_runs, which package runs owns.
package results

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	Answer       *string // JSON; nil unless completed, or deleted for its age
	ErrorCode    *string // nil unless failed
	ErrorMessage *string
	StartedAt    *time.Time
	FinishedAt   *time.Time
}

// A Filter selects among the jobs of a run. Empty members select all.
type Filter struct {
	Statuses   []string
	ModelID    string
	QuestionID string
}

// ErrNoRun is returned when the account has no run with the given id.
var ErrNoRun = errors.New("the account has no such run")

// maxPageBytes bounds the JSON of a page's items.
const maxPageBytes = 4 << 20

// List returns a page of the jobs of a run, those after the ordinal after, in the run's order: by model, question and
// repetition. It ends early, with one item at least, before its JSON is larger than 4 MiB. more reports whether other jobs
// follow. List returns ErrNoRun if the account has no such run.
func List(ctx context.Context, db store.Querier, account, run store.ID, f Filter, after int32, limit int) (page []Result, more bool, err error) {
	l := listing{db: db, account: account, run: run, filter: f, limit: limit}
	err = db.QueryRow(ctx, selectOrdered, account, run).Scan(&l.models, &l.questions, &l.repetitions, &l.total)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, ErrNoRun
	case err != nil:
		return nil, false, err
	}
	return l.read(ctx, after)
}

// A listing reads a page.
type listing struct {
	db                store.Querier
	account, run      store.ID
	filter            Filter
	limit             int
	models, questions []string
	repetitions       int32
	total             int32
}

func (l *listing) read(ctx context.Context, after int32) (page []Result, more bool, err error) {
	sizes := []int{}
	step := l.limit + 1
	for len(page) <= l.limit {
		ordinals, err := l.candidates(ctx, after, step)
		if err != nil {
			return nil, false, err
		}
		if len(ordinals) == 0 {
			break
		}
		after = ordinals[len(ordinals)-1]
		ordinals = slices.DeleteFunc(ordinals, func(o int32) bool { return !l.matches(o) })
		found, foundSizes, err := l.states(ctx, ordinals)
		if err != nil {
			return nil, false, err
		}
		for i := range found {
			if len(l.filter.Statuses) == 0 || slices.Contains(l.filter.Statuses, found[i].Status) {
				page, sizes = append(page, found[i]), append(sizes, foundSizes[i])
			}
		}
		step = min(4*step, 4000)
	}
	n := min(len(page), l.limit)
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

// manyCandidates is the number of jobs of a question from which they are not read one by one to find those of a state.
const manyCandidates = 1000

// candidates returns the next ordinals that may match the filter, at most n. Jobs of few states are found by their rows, so that
// the others of a large run are not read one by one.
func (l *listing) candidates(ctx context.Context, after int32, n int) ([]int32, error) {
	ofQuestion := int(l.total)
	if l.filter.QuestionID != "" {
		ofQuestion /= len(l.questions)
	}
	includes := func(status string) bool { return slices.Contains(l.filter.Statuses, status) }
	open := includes("queued") || includes("running") || includes("canceled")
	var sql string
	switch {
	case len(l.filter.Statuses) == 0 || ofQuestion < manyCandidates:
		return l.next(after, n), nil
	case !includes("completed") && open:
		sql = selectNotCompleted
	case !includes("completed"):
		sql = selectFailed
	case !open:
		sql = selectFinal
	default:
		return l.next(after, n), nil
	}
	first, last := int32(1), l.total
	if l.filter.ModelID != "" {
		perModel := int32(len(l.questions)) * l.repetitions
		model := int32(slices.Index(l.models, l.filter.ModelID))
		first, last = model*perModel+1, (model+1)*perModel // none if it is not a model of the run
	}
	rows, err := l.db.Query(ctx, sql, l.account, l.run, max(after, first-1), last, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// next returns the next n ordinals of the filter's model and question.
func (l *listing) next(after int32, n int) (ordinals []int32) {
	for o := after + 1; o <= l.total && len(ordinals) < n; {
		if l.matches(o) {
			ordinals = append(ordinals, o)
			o++
			continue
		}
		o = (o-1)/l.repetitions*l.repetitions + l.repetitions + 1 // of the next question
		if perModel := int32(len(l.questions)) * l.repetitions; l.filter.ModelID != "" && l.models[(o-2)/perModel] != l.filter.ModelID {
			o = (o-2)/perModel*perModel + perModel + 1 // of the next model
		}
	}
	return ordinals
}

func (l *listing) matches(ordinal int32) bool {
	model, question, _ := l.position(ordinal)
	return (l.filter.ModelID == "" || l.filter.ModelID == model) && (l.filter.QuestionID == "" || l.filter.QuestionID == question)
}

func (l *listing) position(ordinal int32) (model, question string, repetition int) {
	at := ordinal - 1
	questions := int32(len(l.questions))
	return l.models[at/l.repetitions/questions], l.questions[at/l.repetitions%questions], int(at%l.repetitions) + 1
}

// states returns the jobs without their answers, and an upper bound of the JSON size of each.
func (l *listing) states(ctx context.Context, ordinals []int32) ([]Result, []int, error) {
	rows, err := l.db.Query(ctx, selectStates, l.account, l.run, ordinals)
	if err != nil {
		return nil, nil, err
	}
	results, sizes := make([]Result, len(ordinals)), make([]int, len(ordinals))
	for rows.Next() {
		var (
			no                     int
			status                 string
			canceledAt, ended      *time.Time
			started, leased        *time.Time
			attempts, leaseAttempt *int16
			code, message          *string
			answer                 *int
			canceled, held         *bool
		)
		if err := rows.Scan(&no, &status, &canceledAt, &attempts, &canceled, &started, &ended, &code, &message, &answer, &held, &leaseAttempt, &leased); err != nil {
			return nil, nil, err
		}
		r := Result{Key: jobs.Key{Account: l.account, Run: l.run, Ordinal: ordinals[no-1]}, Status: "queued", StartedAt: leased}
		r.ModelID, r.QuestionID, r.Repetition = l.position(ordinals[no-1])
		if leaseAttempt != nil {
			r.Attempts = int(*leaseAttempt)
		}
		switch {
		case attempts != nil && *canceled:
			r.Status, r.Attempts, r.StartedAt, r.FinishedAt = "canceled", int(*attempts), started, ended
		case attempts != nil:
			r.Status, r.Attempts, r.StartedAt, r.FinishedAt = "completed", int(*attempts), started, ended
			if r.ErrorCode, r.ErrorMessage = code, message; code != nil {
				r.Status = "failed"
			}
		case status == "canceled":
			r.Status, r.FinishedAt = "canceled", canceledAt
		case held != nil && *held:
			r.Status = "running"
		}
		size := 500 + len(r.ModelID) + len(r.QuestionID)
		if answer != nil {
			size += *answer
		}
		if message != nil {
			size += 6 * len(*message) // each byte an escape
		}
		results[no-1], sizes[no-1] = r, size
	}
	return results, sizes, rows.Err()
}

func (l *listing) readAnswers(ctx context.Context, page []Result) error {
	var ordinals []int32
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
	var answer *string
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &answer}, func() error {
		page[index[ordinal]].Answer = answer
		return nil
	})
	return err
}
