package results

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/storetest"

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

// write writes the rows of a run. Neighbouring jobs with the same state have one lease, unless that ends between.
func (r *testRun) write(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
WITH job AS (
  SELECT o::integer AS o, state, (o - 1) / $5::integer AS model FROM unnest($3::text[]) WITH ORDINALITY AS j (state, o)
), result AS (
  INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at,
    answer, error_code, error_message)
  SELECT $1, $2, o, 1, true, state = 'swept', now(), now(), CASE state WHEN 'completed' THEN '{}' END,
    CASE state WHEN 'failed' THEN 'x' END, CASE state WHEN 'failed' THEN 'x' END
  FROM job WHERE state IN ('completed', 'failed', 'swept')
), lease AS (
  INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until,
    started_at, worker_id)
  SELECT $1, $2, min(o), max(o), 'p', now(), CASE state WHEN 'running' THEN 'held' ELSE state END, 1, 0, now(), now(), $1
  FROM (
    SELECT *, o - row_number() OVER (PARTITION BY state, model, o / 4 ORDER BY o) AS gap FROM job
    WHERE state IN ('running', 'waiting', 'ready')) j
  GROUP BY state, model, o / 4, gap
), n AS (
  SELECT count(*) AS total, count(*) FILTER (WHERE state = 'completed') AS completed, count(*) FILTER (WHERE state = 'failed') AS failed,
    count(*) FILTER (WHERE state NOT IN ('completed', 'failed', 'running')) AS queued FROM job
), run AS (
  SELECT *, CASE WHEN $4 THEN 'canceled' WHEN queued = total THEN 'queued' WHEN completed + failed = total THEN 'partial'
    ELSE 'running' END AS status FROM n
)
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
  question_ids, repetitions, locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed,
  jobs_canceled, started_at, finished_at)
SELECT $1, $2, $1, status, 'grounded', 'AIVM-1.0', '{m1,m2,m3}', '{q1,q2,q3,q4}', $5 / 4, 'it-IT', 'IT', 'it', total,
  CASE WHEN $4 THEN 0 ELSE queued END, completed, failed, CASE WHEN $4 THEN total - completed - failed ELSE 0 END,
  CASE WHEN status IN ('running', 'partial') THEN now() END, CASE WHEN status IN ('partial', 'canceled') THEN now() END
FROM run`, r.account, r.id, r.states[:], r.canceled, testPerModel)
	storetest.Must(t, err)
}

// testRuns returns runs in each state. In the order of a model, the jobs that were claimed come before the others.
func testRuns(random *rand.Rand) map[string]*testRun {
	runs := make(map[string]*testRun)
	account := store.NewID()
	for _, name := range []string{ // the states of jobs that were claimed; all: no other jobs
		"", "running", "completed completed failed running running waiting ready", "waiting waiting waiting ready running",
		"completed all", "completed failed failed all", "failed all",
		"canceled:", "canceled: completed completed failed running waiting ready", "canceled: completed completed failed swept swept",
		"canceled: completed failed swept all",
	} {
		claimed, all := strings.CutSuffix(name, " all")
		claimed, canceled := strings.CutPrefix(claimed, "canceled:")
		states := strings.Fields(claimed)
		r := &testRun{account: account, id: store.NewID(), canceled: canceled}
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
	runs := testRuns(rand.New(rand.NewPCG(rand.Uint64(), 0)))
	for _, r := range runs {
		r.write(t, pool)
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

// TestPageOfLargeAnswers: a page ends before its items are larger than 4 MiB, and has at least one.
func TestPageOfLargeAnswers(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	r := &testRun{account: store.NewID(), id: store.NewID()}
	for i := range 6 {
		r.states[i] = "completed"
	}
	r.states[5] = "failed"
	r.write(t, pool)
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
