package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/runs"
	"aiv/runs/answers"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// TestEachOutcomeChangesItsJob: what each outcome does to the only job of a run, and to the run. A step is claim,
// renew, pass (5 min), sweep, cancel, 47claims or an outcome. It may be of an earlier attempt (completed/1) and have
// the state that it must return (completed=stale).
func TestEachOutcomeChangesItsJob(t *testing.T) {
	t.Parallel()
	const (
		queued    = "running: 0 of 1 jobs running, 0 completed, 0 failed, 0 canceled"
		running   = "running: 1 of 1 jobs running, 0 completed, 0 failed, 0 canceled"
		completed = "completed: 0 of 1 jobs running, 1 completed, 0 failed, 0 canceled"
		failed    = "failed: 0 of 1 jobs running, 0 completed, 1 failed, 0 canceled"
		canceled  = "canceled: 0 of 1 jobs running, 0 completed, 0 failed, 1 canceled"
	)
	lost := strings.Repeat("claim=claimed pass sweep ", 4)
	retried := strings.Repeat("claim=claimed retry=settled pass pass ", 4)
	for _, test := range []struct{ name, steps, run, code string }{
		{"renewed, completed, repeated",
			"claim renew=held completed=settled completed=settled failed=stale retry=stale renew=lost", completed, ""},
		{"failed, repeated", "claim failed=settled failed=settled completed=stale", failed, "code"},
		{"not claimed", "completed/1=stale renew/1=lost", "queued" + strings.TrimPrefix(queued, "running"), ""},
		{"another attempt", "claim completed/2=stale renew/2=lost", running, ""},
		{"lost", "claim pass completed=stale renew=lost", running, ""},
		{"lost, swept", "claim pass sweep completed=stale renew=lost", queued, ""},
		{"lost, claimed again",
			"claim pass sweep claim=claimed completed/1=stale completed=settled completed/1=stale", completed, ""},
		{"lost four times", lost + "claim=none failed=stale", failed, "lease_expired"},
		{"released", "claim released=settled claim=claimed released/1=settled completed/1=stale released/65537=stale " +
			"completed=settled released/1=settled completed/1=stale", completed, ""},
		{"released fifty times", "claim released 47claims claim=claimed released=settled claim=claimed released=settled " +
			"claim=none released=settled failed=stale", failed, "too_many_claims"},
		{"throttled", "claim throttled=settled claim=none throttled=settled pass claim=claimed", running, ""},
		{"retried", "claim retry=settled claim=none pass claim=claimed retry/1=settled released/1=stale", running, ""},
		{"retried four times", retried + "claim=none retry=settled failed=stale", failed, "code"},
		{"canceled", "claim cancel renew=canceled completed=canceled sweep completed=canceled renew=canceled", canceled, ""},
		{"canceled while queued", "cancel claim=none completed/1=canceled", canceled + ", started: ", ""},
		{"canceled after an attempt", "claim released=settled cancel claim=none released=settled retry=stale", canceled, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			account := s.account()
			run := s.orderOf(account, "m1", 1, 1)
			job := Job{Key: Key{account, run, 1}}
			for i, step := range strings.Fields(test.steps) {
				step, want, wanted := strings.Cut(step, "=")
				if got := s.take(step, &job); wanted && got != want {
					t.Fatalf("step %d, %s: %s, want %s", i, step, got, want)
				}
			}
			equal(t, test.run, s.state(run))
			equal(t, test.code, storetest.Value[string](t, s.pool, `SELECT COALESCE(max(error_code), '') FROM job_results`), "code")
			s.cancel(run)
			s.exec(`DELETE FROM provider_throttles`)
			equal(t, 0, len(s.claim(10)), "jobs of a canceled run were claimed")
		})
	}
}

// take takes a step of TestEachOutcomeChangesItsJob and returns the state. A claim sets latest.
func (s *site) take(step string, latest *Job) (state string) {
	s.t.Helper()
	step, number, earlier := strings.Cut(step, "/")
	of := *latest
	if earlier {
		of.Attempt, _ = strconv.Atoi(number)
	}
	switch step {
	case "claim":
		if all := s.claim(10); len(all) == 1 && all[0].Key == latest.Key {
			*latest = all[0]
			return "claimed"
		}
		return "none"
	case "pass":
		s.pass(5 * time.Minute)
	case "47claims":
		s.exec(`UPDATE job_leases SET attempt = attempt + 47`)
	case "sweep":
		s.sweep()
	case "cancel":
		s.cancel(of.Key.Run)
	case "renew":
		return s.renew(time.Minute, of)
	default:
		state = s.settle(Outcome(step), of)
		if state == Settled && (step == string(Retry) || step == string(Throttled)) {
			s.pass(-2 * time.Minute) // it waits for longer than the test takes until the next step
		}
	}
	return state
}

// TestJobsOfAClaimPartWays: the jobs of one claim part ways, and each keeps its own state. The statistics count what
// took effect, each job as started when it is claimed first, and the usage of answers as far as workers know it.
func TestJobsOfAClaimPartWays(t *testing.T) {
	s := newSite(t)
	run := s.order(10)
	s.exec(`UPDATE measurement_runs SET created_at = now() - interval '2 min'`)
	all := s.claim(10)
	s.settle(Completed, all[4])
	s.settle(Released, all[0], all[1], all[7])
	s.settle(Failed, all[9], all[2])
	s.check()
	equal(t, "held lost held held", s.renew(time.Hour, all[3], all[4], all[5], all[8]))
	s.pass(2 * time.Minute) // job 7, which was not renewed, is lost
	s.sweep()
	s.check()
	again := s.claim(10)
	got := ""
	for _, j := range again {
		got += fmt.Sprint(j.Key.Ordinal, ":", j.Attempt, " ")
	}
	equal(t, "1:2 2:2 7:2 8:2 ", got, "ordinals and attempts of the jobs that came back")
	var rest []Settlement
	for _, j := range append(again, all[3], all[5], all[8]) {
		rest = append(rest, settlement(j, Completed))
	}
	rest[0].Answer.Usage = &answers.Usage{InputTokens: new(int64(10)), OutputTokens: new(int64(1))}
	rest[1].Answer.Usage = &answers.Usage{OutputTokens: new(int64(2)), Searches: new(int64(3))}
	s.report(Reporter{}, rest[:1]...)
	s.report(Reporter{}, rest...) // the first is repeated, and changes nothing
	equal(t, "partial: 0 of 10 jobs running, 8 completed, 2 failed, 0 canceled", s.state(run))
	stats := s.d.Stats()
	equal(t, "map[p1:14] map[p1:1] map[p1:map[completed:8 failed:2 released:3]] map[p1:{10 3 3}]",
		fmt.Sprint(stats.Claimed, stats.Expired, stats.Settlements, stats.Usage), "claimed, expired, settled, and the usage of answers")
	want := Histogram{Sum: 20 * time.Minute}
	want.Counts[slices.Index(StartedBounds[:], 5*time.Minute)] = 10
	stats.Started.Sum = stats.Started.Sum.Truncate(20 * time.Minute)
	equal(t, want, stats.Started, "how long jobs waited")
}

// TestResultsAreWritten: results contain what was settled, whether inserted or copied. If one row cannot be written,
// none is, and the settlement can be repeated, also in one transaction; with another outcome it is stale then.
func TestResultsAreWritten(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 120} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSite(t)
			s.orderOf(s.account(), "m1", n/3, 3)
			s.settle(Released, s.claim(1)...) // the first job has two attempts, of which the first one starts the run
			claimed := s.claim(n)
			slices.SortFunc(claimed, func(a, b Job) int { return int(a.Key.Ordinal - b.Key.Ordinal) })
			var want []string
			var settlements, others []Settlement
			for i, j := range claimed {
				w, result := settlement(j, Failed), "code: "
				w.ErrorMessage = "" // and not NULL
				if i%3 != 1 {
					w = settlement(j, Completed)
					w.Answer.Text = strings.Repeat("perché 日本 😀", 1<<(i%10)) // together they fit into one transaction
					result = string(w.Answer.AppendStored(nil))
				}
				settlements, want = append(settlements, w), append(want, fmt.Sprint(i+1, " ", j.Attempt, " ", result))
				others = append(others, settlement(j, Released))
			}

			s.exec(`INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at)
			SELECT account_id, id, 2, 1, true, now(), now() FROM measurement_runs`)
			if _, err := s.d.Settle(t.Context(), Reporter{}, settlements); err == nil {
				t.Error("a second result of one job was written")
			}
			s.exec(`DELETE FROM job_results WHERE ordinal = 2`)
			equal(t, 0, s.rows("job_results"), "results of the failed transaction are there")

			states := strings.Repeat("settled ", 2*n) + strings.Repeat("stale ", n)
			equal(t, strings.TrimSpace(states), s.report(Reporter{}, slices.Concat(settlements, settlements, others)...))
			got, err := store.Collect(t.Context(), s.pool, pgx.RowTo[string], `
SELECT concat_ws(' ', e.ordinal, e.attempts, e.answer, e.error_code || ': ' || e.error_message) FROM job_results e
JOIN measurement_runs r ON r.account_id = e.account_id AND r.id = e.run_id AND e.finished_at = r.finished_at
WHERE e.settled AND NOT e.canceled AND (e.started_at = r.started_at) = (e.ordinal = 1) AND e.started_at < e.finished_at
ORDER BY e.ordinal`)
			must(t, err)
			equal(t, want, got)
		})
	}
}

// TestRevokedWorkerChangesNothing: a worker that is revoked gets no job, also if its claim has waited for another one,
// and its reports change nothing. The reports of others in the same transaction are applied.
func TestRevokedWorkerChangesNothing(t *testing.T) {
	s := newSite(t)
	run := s.order(3)
	revoked := store.NewID()
	held := s.claim(2)
	other := storetest.Begin(t, s.pool, lockClaims)
	claim := s.goClaim(ClaimRequest{Worker: revoked})
	storetest.UntilWaiting(t, s.pool, "advisory")
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.d.Claim(left, request(ClaimRequest{})); err == nil { // it would follow the claim that waits
		t.Error("the claim of a client that has left succeeds")
	}
	s.exec(`INSERT INTO workers (id, name, token_hash, revoked_at) VALUES ($1, 'worker', sha256(''), now())`, revoked)
	must(t, other.Rollback(t.Context()))
	if got, err := claim(); err != auth.ErrUnknownWorker || len(got) != 0 {
		t.Errorf("the claim of the revoked worker: %d jobs, %v", len(got), err)
	}
	reports, err := s.d.reportAll(t.Context(), []*report{
		{Reporter{Worker: revoked}, []Settlement{settlement(held[0], Completed)}},
		{Reporter{Worker: revoked}, []Settlement{settlement(held[0], renewed)}},
		{Reporter{Worker: store.NewID()}, []Settlement{settlement(held[1], Completed)}}})
	must(t, err)
	for i, want := range []string{" " + auth.ErrUnknownWorker.Error(), " " + auth.ErrUnknownWorker.Error(), "settled <nil>"} {
		equal(t, want, fmt.Sprint(statesOf(reports[i].items), " ", reports[i].err), "report ", i+1)
	}
	equal(t, "running: 1 of 3 jobs running, 1 completed, 0 failed, 0 canceled", s.state(run))
	equal(t, "stale", s.report(Reporter{Providers: []string{"p2"}}, settlement(held[1], Completed)), "from another provider's worker")
	equal(t, 1, len(s.claim(1)), "jobs that the client that has left did not get")
}

// TestFailedCountSettlesNothing: a job is settled together with what is counted in its answer and with what its final
// run brings about, or not at all. A repeated settlement brings about nothing.
func TestFailedCountSettlesNothing(t *testing.T) {
	s := newSite(t)
	fault := errors.New("fault")
	var countFault, finishedFault error
	counted, finished := 0, 0
	s.d = s.dispatcher(Config{
		Count:    func(context.Context, store.Tx, *pgx.Batch, []Ended) error { counted++; return countFault },
		Prepare:  func(ended []Ended) []any { return make([]any, len(ended)) },
		Finished: func(context.Context, store.Tx, []runs.Run) error { finished++; return finishedFault },
	})
	run := s.order(1)
	held := s.claim(1)
	for _, faults := range [][2]error{{fault, nil}, {nil, fault}} {
		countFault, finishedFault = faults[0], faults[1]
		if _, err := s.d.Settle(t.Context(), Reporter{}, []Settlement{settlement(held[0], Completed)}); !errors.Is(err, fault) {
			t.Errorf("%v: settled with %v", faults, err)
		}
		equal(t, "running: 1 of 1 jobs running, 0 completed, 0 failed, 0 canceled", s.state(run))
		equal(t, 0, s.rows("job_results"), faults, ": results")
	}
	countFault, finishedFault, counted, finished = nil, nil, 0, 0
	for range 2 {
		equal(t, "settled", s.settle(Completed, held...))
		equal(t, []int{1, 1}, []int{counted, finished}, "counted answers and finished runs")
	}
}

// TestLargeSettlementsAreSplit: settlements are split into parts that fit into half of a batch, with a transaction each.
func TestLargeSettlementsAreSplit(t *testing.T) {
	s := newSite(t)
	const half = maxBatchWeight / 2
	var all []Settlement
	for _, size := range []int{0, half * 2, half/2 - 1, half/2 - 1, half / 2} { // of answers in KiB
		a := &answers.Answer{Text: strings.Repeat("x", size<<10)}
		all = append(all, Settlement{Attempt: 1, Outcome: Completed, Answer: a})
	}
	equal(t, "stale stale stale stale stale", s.report(Reporter{}, all...))
	equal(t, uint64(4), s.d.reports.Stats().Inputs, "transactions")
}

// TestAwayStandby: a claim that finds no jobs does not wait for a synchronous standby that is away. A settlement that
// is repeated because the standby did not confirm the first one waits for the standby, too.
func TestAwayStandby(t *testing.T) {
	t.Parallel()
	url := storetest.NewCluster(t, "synchronous_standby_names=away").URL()
	s := siteAt(t, url+"&synchronous_commit=local") // does not wait for the standby
	waiting := s.open("&synchronous_commit=on")
	impatient := s.dispatcher(Config{Pool: waiting, Timeout: time.Second})
	s.order(1)
	held := s.claim(1)
	for try := range 2 {
		got, err := impatient.Settle(t.Context(), Reporter{}, []Settlement{settlement(held[0], Completed)})
		if err == nil {
			t.Errorf("settlement %d is acknowledged: %v", try+1, got)
		}
	}
	patient := s.on(s.dispatcher(Config{Pool: waiting}))
	for range 33 { // nextval writes WAL once for 33 numbers
		patient.claim(1)
	}
	equal(t, "settled", s.settle(Completed, held...))
	s.check()
}
