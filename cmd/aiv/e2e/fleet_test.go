package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// A fleet is workers that claim jobs and settle them as completed, through dispatchers that may be replaced. It records
// the acknowledged settlements and compares them with the database at the end.
type fleet struct {
	t         *testing.T
	token     string
	dispatch  []atomic.Pointer[process] // a worker calls them in turn
	text      func(job) string          // of an answer; it begins as answerText does, and goes on after a full stop
	forgetful float64                   // how many of their claims workers do not settle, as if they had been killed

	wg     sync.WaitGroup
	over   atomic.Bool // a claim that finds nothing ends its worker, and no worker is killed
	deaths atomic.Int64

	mu      sync.Mutex
	settled settlements
	failed  int // requests that got no response or 503
}

// newFleet starts dispatchers, with arguments.
func newFleet(t *testing.T, url string, dispatchers int, args ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, token: newWorker(t, url), dispatch: make([]atomic.Pointer[process], dispatchers),
		settled: make(settlements), text: answerText}
	for i := range f.dispatch {
		f.dispatch[i].Store(startDispatch(t, url, args...))
	}
	return f
}

// begin starts workers.
func (f *fleet) begin(workers int) {
	for n := range workers {
		f.wg.Go(func() { f.work(n) })
	}
}

func (f *fleet) client(try int) *workerClient {
	return &workerClient{f.dispatch[try%len(f.dispatch)].Load().base, f.token, client}
}

// work is a worker.
func (f *fleet) work(try int) {
	for ; ; try++ {
		jobs, err := f.client(try).claim("null", 20, 0, byForm(60, 10)) // what a killed dispatcher had comes back
		switch {
		case err != nil || len(jobs) == 0 && !f.over.Load():
			f.note(err)
			<-time.After(20 * time.Millisecond)
			continue
		case len(jobs) == 0:
			return
		// A killed worker spares jobs that would fail for the number of their leases.
		case !f.over.Load() && rand.Float64() < f.forgetful && !slices.ContainsFunc(jobs, func(j job) bool { return j.Attempt > 2 }):
			f.deaths.Add(1)
			if rand.IntN(2) == 0 { // while it settles
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(10*time.Millisecond))
				f.client(try).settle(ctx, jobs, f.text)
				cancel()
			}
			continue
		}
		for ; ; try++ { // until it is acknowledged
			settled, err := f.client(try).settle(context.Background(), jobs, f.text)
			if err == nil {
				f.mu.Lock()
				for i, j := range jobs {
					if settled[i].State == "settled" {
						f.settled.add(f.t, j.ID, j.Attempt)
					}
				}
				f.mu.Unlock()
				break
			}
			f.note(err)
			<-time.After(20 * time.Millisecond)
		}
	}
}

// note checks why a request failed: during a fault it may get no response, or 503 with Retry-After.
func (f *fleet) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed++
	if errors.Is(err, errRefused) {
		f.t.Errorf("during a fault: %v", err)
	}
}

// settlements are the attempts that were acknowledged, by job.
type settlements map[string]int

// add adds one, and fails the test if the job was settled by another attempt.
func (s settlements) add(t *testing.T, id string, attempt int) {
	t.Helper()
	if before, ok := s[id]; ok && before != attempt {
		t.Errorf("job %s was settled in the attempts %d and %d", id, before, attempt)
	}
	s[id] = attempt
}

// until waits until the numbers of acknowledged jobs and of failed requests satisfy a condition.
func (f *fleet) until(what string, condition func(settled, failed int) bool) {
	f.t.Helper()
	storetest.Eventually(f.t, what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return condition(len(f.settled), f.failed)
	})
}

// end works until all runs are final. What killed processes had comes back at once, instead of when its leases end.
func (f *fleet) end(pool *pgxpool.Pool) {
	f.t.Helper()
	f.over.Store(true)
	f.wg.Wait()
	for number(f.t, pool, `SELECT count(*) FROM measurement_runs WHERE status IN ('queued', 'running')`) > 0 {
		endLeases(f.t, pool)
		f.work(0)
	}
}

// endLeases ends the leases that workers hold, by default all of them, of all runs that no transaction has locked. It
// locks the runs first, as every change of leases does; otherwise a concurrent settlement could miss a lease.
func endLeases(t *testing.T, pool *pgxpool.Pool, workers ...store.ID) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		UPDATE job_leases l SET until = now()
		FROM (SELECT account_id, id FROM measurement_runs WHERE status = 'running' FOR NO KEY UPDATE SKIP LOCKED) r
		WHERE (l.account_id, l.run_id) = (r.account_id, r.id) AND l.state = 'held' AND ($1::uuid[] IS NULL OR worker_id = ANY ($1))`,
		store.OnCitus(`UPDATE job_leases SET until = now() WHERE state = 'held' AND ($1::uuid[] IS NULL OR worker_id = ANY ($1))`),
		workers)
	must(t, err)
}

// check compares the acknowledged settlements with the database: each has its job's result, no job was settled by two
// attempts, and all runs are completed.
func (f *fleet) check(what string, pool *pgxpool.Pool) {
	t := f.t
	t.Helper()
	stored, lost := storedAnswers(t, pool, f.settled)
	total := number(t, pool, `SELECT sum(total_jobs) FROM measurement_runs`)
	if len(stored) != total {
		t.Errorf("%s: %d jobs have answers, want %d", what, len(stored), total)
	}
	if n := number(t, pool, `SELECT count(*) FROM measurement_runs WHERE status <> 'completed'`); n > 0 {
		t.Errorf("%s: %d runs are not completed", what, n)
	}
	t.Logf("%s: %d of %d jobs final, %d acknowledged, lost %d; %d kills of workers, %d requests failed", what, len(stored), total,
		len(f.settled), lost, f.deaths.Load(), f.failed)
}

var answered = regexp.MustCompile(`"text":"of (\w+) in attempt (\d+)`)

// storedAnswers returns the attempt that each job's answer in the database is of, by job, and how many of the attempts
// that were acknowledged are lost. The attempt must be the last one of the job.
func storedAnswers(t *testing.T, pool *pgxpool.Pool, acknowledged settlements) (attempts map[string]int, lost int) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT attempts, COALESCE(answer, error_code) FROM job_results`)
	must(t, err)
	attempts = make(map[string]int)
	var attempt int
	var answer string
	_, err = pgx.ForEachRow(rows, []any{&attempt, &answer}, func() error {
		if of := answered.FindStringSubmatch(answer); of == nil || of[2] != fmt.Sprint(attempt) {
			t.Errorf("a job that was claimed %d times has %s", attempt, answer)
		} else {
			attempts[of[1]] = attempt
		}
		return nil
	})
	must(t, err)
	for id, attempt := range acknowledged {
		if attempts[id] != attempt {
			lost++
			t.Errorf("job %s was acknowledged in attempt %d; the database has attempt %d", id, attempt, attempts[id])
		}
	}
	return attempts, lost
}

// A job is what a worker claims, or the result of its settlement.
type job struct {
	ID      string
	Attempt int
	State   string
}

// A workerClient calls the worker interface of a dispatcher.
type workerClient struct {
	base, token string
	http        *http.Client
}

// newWorkerClient creates a worker.
func newWorkerClient(t *testing.T, databaseURL string, dispatch *process) *workerClient {
	t.Helper()
	return &workerClient{dispatch.base, newWorker(t, databaseURL), client}
}

// Errors of a worker's requests: a response with 503 and Retry-After, or another one with another status than 200.
var errUnavailable, errRefused = errors.New("unavailable"), errors.New("refused")

func unavailable(err error) bool { return errors.Is(err, errUnavailable) }

// post sends a request and returns the jobs of its response.
func (w *workerClient) post(ctx context.Context, route, body string) ([]job, error) {
	a, err := request(ctx, w.http, "POST", w.base+route, w.token, "", body)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" {
		return nil, fmt.Errorf("%w: %s: %s", errUnavailable, route, a.body)
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %d %s", errRefused, route, a.status, a.body)
	}
	var out struct{ Jobs []job }
	err = json.Unmarshal([]byte(a.body), &out)
	return out.Jobs, err
}

// claim claims jobs of providers, of any if it is "null", for a number of seconds.
func (w *workerClient) claim(providers string, limit, wait, lease int) ([]job, error) {
	body := fmt.Sprintf(`{"providers":%s,"limit":%d,"wait_seconds":%d,"lease_seconds":%d}`, providers, limit, wait, lease)
	return w.post(context.Background(), "/claim", body)
}

// answerText is the text by which an answer is recognized.
func answerText(j job) string { return fmt.Sprintf("of %s in attempt %d", j.ID, j.Attempt) }

// settle reports jobs as completed, by answers with these texts.
func (w *workerClient) settle(ctx context.Context, jobs []job, text func(job) string) ([]job, error) {
	var settled []string
	for _, j := range jobs {
		settled = append(settled, fmt.Sprintf(`{"id":%q,"attempt":%d,"outcome":"completed","answer":{"text":%q,"citations":[{"url":"https://www.example.org/a",`+
			`"title":null}],"search_queries":["q"],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}}`, j.ID, j.Attempt, text(j)))
	}
	return w.post(ctx, "/settle", `{"jobs":[`+strings.Join(settled, ",")+`]}`)
}

// claims claims n jobs, for longer than a test takes. As settles, it repeats what gets 503.
func (w *workerClient) claims(t *testing.T, n int) (claimed []job) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("%d jobs are claimed", n), func() bool {
		claimed = append(claimed, w.claimSome(t, n-len(claimed))...)
		return len(claimed) >= n
	})
	return claimed
}

// claimSome claims up to n jobs, or none if the claim gets 503.
func (w *workerClient) claimSome(t *testing.T, n int) []job {
	t.Helper()
	jobs, err := w.claim("null", n, 0, 600)
	if err != nil && !unavailable(err) {
		t.Fatal(err)
	}
	return jobs
}

// settles reports jobs as completed, and fails the test unless they are settled.
func (w *workerClient) settles(t *testing.T, jobs []job) {
	t.Helper()
	storetest.Eventually(t, "the settlement", func() bool {
		settled, err := w.settle(t.Context(), jobs, answerText)
		if unavailable(err) {
			return false
		}
		if err != nil || len(settled) != len(jobs) || slices.ContainsFunc(settled, func(j job) bool { return j.State != "settled" }) {
			t.Errorf("settled: %+v, %v", settled, err)
		}
		return true
	})
}
