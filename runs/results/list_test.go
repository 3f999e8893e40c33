package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// The runs of these tests have 3 models, 4 questions and 3 repetitions.
const (
	testQuestions   = 4
	testRepetitions = 3
	testPerModel    = testQuestions * testRepetitions
	testJobs        = 3 * testPerModel
)

// A testRun is a run whose jobs have the given states: a status of a job, or waiting, ready or swept.
type testRun struct {
	account, id store.ID
	states      [testJobs]string
	canceled    bool
}

// status returns the status that clients see of the job with an ordinal.
func (r *testRun) status(ordinal int) string {
	switch state := r.states[ordinal-1]; {
	case state == "completed" || state == "failed":
		return state
	case r.canceled:
		return "canceled"
	case state == "running":
		return state
	}
	return "queued"
}

// write writes the rows of a run. Neighbouring jobs with the same state have one lease, or several.
func (r *testRun) write(t *testing.T, pool *pgxpool.Pool, random *rand.Rand) {
	t.Helper()
	counts := map[string]int{}
	var b pgx.Batch
	for at := 0; at < testJobs; {
		first, state := at+1, r.states[at]
		counts[r.status(first)]++
		at++
		switch state {
		case "completed", "failed", "swept":
			b.Queue(`
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at,
  answer, error_code, error_message)
VALUES ($1, $2, $3, 1, true, $4 = 'swept', now(), now(), CASE $4 WHEN 'completed' THEN '{}' END,
  CASE $4 WHEN 'failed' THEN 'x' END, CASE $4 WHEN 'failed' THEN 'x' END)`, r.account, r.id, first, state)
		case "running", "waiting", "ready":
			for at%testPerModel != 0 && r.states[at] == state && random.IntN(3) > 0 {
				counts[r.status(at+1)]++
				at++
			}
			b.Queue(`
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt,
  tries, until, started_at, worker_id)
VALUES ($1, $2, $3, $4, 'p', now(), CASE $5 WHEN 'running' THEN 'held' ELSE $5 END, 1, 0, now(), now(), $1)`,
				r.account, r.id, first, at, state)
		}
	}
	status := "running"
	switch {
	case r.canceled:
		status = "canceled"
	case counts["queued"] == testJobs:
		status = "queued"
	case counts["completed"]+counts["failed"] == testJobs:
		status = "partial"
	}
	b.Queue(`
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
  question_ids, repetitions, locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed,
  jobs_canceled, started_at, finished_at)
VALUES ($1, $2, $1, $3, 'grounded', 'AIVM-1.0', '{m1,m2,m3}', '{q1,q2,q3,q4}', $4, 'it-IT', 'IT', 'it', $5, $6, $7,
  $8, $9, CASE WHEN $3 IN ('running', 'partial') THEN now() END, CASE WHEN $3 IN ('partial', 'canceled') THEN now() END)`,
		r.account, r.id, status, testRepetitions, testJobs,
		counts["queued"], counts["completed"], counts["failed"], counts["canceled"])
	storetest.Must(t, pool.SendBatch(t.Context(), &b).Close())
}

// testRuns returns runs in each state. In the order of a model, the jobs that were claimed come before the others.
func testRuns(random *rand.Rand) map[string]*testRun {
	runs := make(map[string]*testRun)
	account := store.NewID()
	for name, claimed := range map[string]string{ // the states of jobs that were claimed; all: no other jobs
		"queued":                      "",
		"canceled before a claim":     "",
		"started":                     "running",
		"running":                     "completed completed failed running running waiting ready",
		"all claimed":                 "completed completed failed running running waiting ready all",
		"retries":                     "waiting waiting waiting ready running",
		"mostly failed":               "failed failed failed failed failed failed failed completed running",
		"completed":                   "completed all",
		"partial":                     "completed failed failed all",
		"failed":                      "failed all",
		"canceled":                    "completed completed failed running waiting ready",
		"canceled and swept":          "completed completed failed swept swept",
		"canceled, claimed and swept": "completed failed swept all",
	} {
		claimed, all := strings.CutSuffix(claimed, " all")
		states := strings.Fields(claimed)
		r := &testRun{account: account, id: store.NewID(), canceled: strings.HasPrefix(name, "canceled")}
		for model := range 3 {
			n := random.IntN(testPerModel)
			if all {
				n = testPerModel
			}
			for i := range n {
				if len(states) > 0 {
					r.states[model*testPerModel+i] = states[random.IntN(len(states))]
				}
			}
		}
		runs[name] = r
	}
	return runs
}

// TestPagesOfEachFilter compares the pages of each filter with the states of all jobs, for runs in each state and steps
// of several sizes.
func TestPagesOfEachFilter(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	runs := testRuns(random)
	for _, r := range runs {
		r.write(t, pool, random)
	}
	filters := []Filter{{}, {ModelID: "m2"}, {QuestionID: "q2"}, {ModelID: "m3", QuestionID: "q4"}, {ModelID: "none"},
		{QuestionID: "none"}}
	for name, r := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for set := range 1 << len(Statuses) {
				for i, f := range filters {
					if (set+i+len(name))%2 == 0 {
						continue // half of them, for each run others
					}
					for status := range Statuses {
						if set>>status&1 == 1 {
							f.Statuses = append(f.Statuses, Statuses[status])
						}
					}
					step := []int{1, 5, maxCandidates}[(set+i)%3]
					limit := []int{2, 5, 7, 100}[(set+i)%4]
					got := pagesOf(t, pool, r, f, step, limit)
					storetest.Equal(t, r.pages(f, limit), got, f, ", step ", step, ", limit ", limit, ", states ", r.states)
				}
			}
		})
	}
}

// pagesOf lists the jobs of a run.
func pagesOf(t *testing.T, db store.Querier, r *testRun, f Filter, step, limit int) (pages [][]string) {
	t.Helper()
	for after, more := int32(0), true; more; {
		l := listing{db: db, account: r.account, run: r.id, filter: f, limit: limit, step: step}
		var page []Result
		var err error
		page, more, err = l.read(t.Context(), after)
		storetest.Must(t, err)
		var jobs []string
		for _, j := range page {
			jobs = append(jobs, fmt.Sprint(j.Key.Ordinal, " ", j.ModelID, " ", j.QuestionID, " ", j.Repetition, " ", j.Status))
			after = j.Key.Ordinal
		}
		pages = append(pages, jobs)
	}
	return pages
}

// pages returns what pagesOf must return.
func (r *testRun) pages(f Filter, limit int) (pages [][]string) {
	var jobs []string
	for at := range testJobs {
		model, status := fmt.Sprint("m", at/testPerModel+1), r.status(at+1)
		question := fmt.Sprint("q", at%testPerModel/testRepetitions+1)
		if cmp.Or(f.ModelID, model) == model && cmp.Or(f.QuestionID, question) == question &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, status)) {
			jobs = append(jobs, fmt.Sprint(at+1, " ", model, " ", question, " ", at%testRepetitions+1, " ", status))
		}
	}
	if len(jobs) == 0 {
		return [][]string{nil}
	}
	return slices.Collect(slices.Chunk(jobs, limit))
}

// A changing pool calls change before it first reads the states of the jobs that were found.
type changing struct {
	*pgxpool.Pool
	change func()
}

func (c *changing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if sql == selectStates && c.change != nil {
		c.change()
		c.change = nil
	}
	return c.Pool.Query(ctx, sql, args...)
}

// TestJobsThatChange: a page is full if enough jobs follow, even when those that were found first have been claimed
// since. A run that was deleted since has no jobs.
func TestJobsThatChange(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	r := &testRun{account: store.NewID(), id: store.NewID(),
		states: [testJobs]string{"ready", "waiting", "ready", "waiting", "ready", testPerModel: "running"}}
	r.write(t, pool, rand.New(rand.NewPCG(1, 1)))
	db := &changing{pool, func() { storetest.Exec(t, pool, `UPDATE job_leases SET state = 'held' WHERE ordinal <= 3`) }}
	queued := Filter{Statuses: []string{"queued"}}
	got := pagesOf(t, db, r, queued, 1, 3)
	for i := range 3 {
		r.states[i] = "running"
	}
	storetest.Equal(t, r.pages(queued, 3), got)
	db.change = func() { storetest.Exec(t, pool, `DELETE FROM measurement_runs`) }
	if page, _, err := List(t.Context(), db, r.account, r.id, Filter{}, 0, 2); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("%v, %+v", err, page)
	}
}

// TestPageOfLargeAnswers: a page ends before its items are larger than 4 MiB, and has at least one.
func TestPageOfLargeAnswers(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	r := &testRun{account: store.NewID(), id: store.NewID()}
	for i := range 6 {
		r.states[i] = "completed"
	}
	r.states[5] = "failed"
	r.write(t, pool, rand.New(rand.NewPCG(1, 1)))
	for i, size := range []int{5 << 20, 2 << 20, 2<<20 - 2000, 10, 4<<20 - 10_000} {
		storetest.Exec(t, pool, fmt.Sprintf(`UPDATE job_results SET answer = jsonb_build_object('text', repeat('x', %d))::text
			WHERE ordinal = %d`, size, i+1))
	}
	// In JSON the message is six times as long.
	storetest.Exec(t, pool, `UPDATE job_results SET error_message = repeat(U&'\0001', 2048) WHERE ordinal = 6`)
	var pages []int
	ended := Filter{Statuses: []string{"completed", "failed"}}
	for after, more := int32(0), true; more; {
		page, follows, err := List(t.Context(), pool, r.account, r.id, ended, after, 200)
		storetest.Must(t, err)
		more, after, pages = follows, page[len(page)-1].Key.Ordinal, append(pages, len(page))
	}
	storetest.Equal(t, []int{1, 2, 2, 1}, pages)
}
