package results

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
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
		ordinal, state := at+1, r.states[at]
		counts[r.status(ordinal)]++
		at++
		switch state {
		case "completed", "failed", "swept":
			b.Queue(`INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, canceled, started_at, finished_at, answer, error_code, error_message)
				VALUES ($1, $2, $3, 1, true, $4, now(), now(), $5, $6, $6)`,
				r.account, r.id, ordinal, state == "swept", textIf(state == "completed", "{}"), textIf(state == "failed", "x"))
		case "running", "waiting", "ready":
			lease := state
			if state == "running" {
				lease = "held"
			}
			for at%testPerModel != 0 && r.states[at] == state && random.IntN(3) > 0 {
				counts[r.status(at+1)]++
				at++
			}
			b.Queue(`INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
				VALUES ($1, $2, $3, $4, 'p', now(), $5, 1, 0, now(), now(), $1)`,
				r.account, r.id, ordinal, at, lease)
		}
	}
	status := "running"
	var started, finished *time.Time
	switch now := time.Now(); {
	case r.canceled:
		status, finished = "canceled", &now
	case counts["queued"] == testJobs:
		status = "queued"
	case counts["completed"]+counts["failed"] == testJobs:
		status, started, finished = "partial", &now, &now
	default:
		started = &now
	}
	b.Queue(`INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
			locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed, jobs_canceled, started_at, finished_at)
		VALUES ($1, $2, $1, $3, 'grounded', 'AIVM-1.0', '{m1,m2,m3}', '{q1,q2,q3,q4}', $4, 'it-IT', 'IT', 'it', $5, $6, $7, $8, $9, $10, $11)`,
		r.account, r.id, status, testRepetitions, testJobs, counts["queued"], counts["completed"], counts["failed"], counts["canceled"],
		started, finished)
	if err := pool.SendBatch(t.Context(), &b).Close(); err != nil {
		t.Fatal(err)
	}
}

func textIf(condition bool, text string) *string {
	if condition {
		return &text
	}
	return nil
}

// testRuns returns runs in each state. In the order of a model, the jobs that were claimed come before the others.
func testRuns(random *rand.Rand) map[string]*testRun {
	runs := make(map[string]*testRun)
	account := store.NewID()
	for _, of := range []struct {
		name, states string // of the jobs that were claimed
		all          bool   // claimed
		canceled     bool
	}{
		{name: "queued"},
		{name: "canceled before a claim", canceled: true},
		{name: "started", states: "running"},
		{name: "running", states: "completed completed failed running running waiting ready"},
		{name: "all claimed", states: "completed completed failed running running waiting ready", all: true},
		{name: "retries", states: "waiting waiting waiting ready running"},
		{name: "mostly failed", states: "failed failed failed failed failed failed failed completed running"},
		{name: "completed", states: "completed", all: true},
		{name: "partial", states: "completed failed failed", all: true},
		{name: "failed", states: "failed", all: true},
		{name: "canceled", states: "completed completed failed running waiting ready", canceled: true},
		{name: "canceled and swept", states: "completed completed failed swept swept", canceled: true},
		{name: "claimed, canceled and swept", states: "completed failed swept", all: true, canceled: true},
	} {
		r := &testRun{account: account, id: store.NewID(), canceled: of.canceled}
		states := strings.Fields(of.states)
		for model := range 3 {
			claimed := random.IntN(testPerModel)
			if of.all {
				claimed = testPerModel
			} else if len(states) == 0 {
				claimed = 0
			}
			for i := range claimed {
				r.states[model*testPerModel+i] = states[random.IntN(len(states))]
			}
		}
		runs[of.name] = r
	}
	return runs
}

// TestPagesOfEachFilter compares the pages of each filter with the states of all jobs, for runs in each state and steps of
// several sizes.
func TestPagesOfEachFilter(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	runs := testRuns(random)
	for _, r := range runs {
		r.write(t, pool, random)
	}
	filters := []Filter{{}, {ModelID: "m2"}, {QuestionID: "q2"}, {ModelID: "m3", QuestionID: "q4"}, {ModelID: "none"}, {QuestionID: "none"}}
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
					got, want := pagesOf(t, pool, r, f, step, limit), r.pages(f, limit)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%+v, step %d, limit %d, states %q:\n%s", f, step, limit, r.states, diff)
					}
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
		if page, more, err = l.read(t.Context(), after); err != nil {
			t.Fatal(err)
		}
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
		model, question, status := fmt.Sprint("m", at/testPerModel+1), fmt.Sprint("q", at%testPerModel/testRepetitions+1), r.status(at+1)
		if (f.ModelID == "" || f.ModelID == model) && (f.QuestionID == "" || f.QuestionID == question) &&
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
	reads  int // of states
}

func (c *changing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if sql == selectStates {
		if c.reads++; c.reads == 1 {
			c.change()
		}
	}
	return c.Pool.Query(ctx, sql, args...)
}

// TestJobsThatChange: a page is full if enough jobs follow, even when those that were found first have changed since.
func TestJobsThatChange(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	r := &testRun{account: store.NewID(), id: store.NewID()}
	for i := range 10 {
		r.states[i] = []string{"waiting", "ready"}[i%2] // each job has its own lease
	}
	r.states[testPerModel] = "running"
	r.write(t, pool, rand.New(rand.NewPCG(1, 1)))
	db := &changing{Pool: pool, change: func() {
		storetest.Exec(t, pool, `UPDATE job_leases SET state = 'held' WHERE ordinal <= 3`)
	}}
	queued := Filter{Statuses: []string{"queued"}}
	got := pagesOf(t, db, r, queued, 1, 3)
	for i := range 3 {
		r.states[i] = "running"
	}
	if diff := cmp.Diff(r.pages(queued, 3), got); diff != "" {
		t.Error(diff)
	}
}

// TestCanceledWhileRead: if a run is canceled after its jobs were found, the steps grow until none is left.
func TestCanceledWhileRead(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	r := &testRun{account: store.NewID(), id: store.NewID()}
	r.write(t, pool, rand.New(rand.NewPCG(1, 1)))
	db := &changing{Pool: pool, change: func() {
		storetest.Exec(t, pool, `UPDATE measurement_runs SET status = 'canceled', finished_at = now()`)
	}}
	queued := Filter{Statuses: []string{"queued"}}
	got := pagesOf(t, db, r, queued, maxCandidates, 1)
	if r.canceled = true; db.reads > 4 {
		t.Errorf("the states of %d jobs were read by %d statements, want 4 at most", testJobs, db.reads)
	}
	if diff := cmp.Diff(r.pages(queued, 1), got); diff != "" {
		t.Error(diff)
	}
}
