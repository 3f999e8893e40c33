package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// A step is something that happens to the only job of a run, and the state that it returns.
type step struct {
	do      jobs.Outcome // or claim, renew, pass (61 s), sweep, cancel, 47 claims
	attempt int          // default: the latest
	want    string
}

// TestEachOutcomeChangesItsJob: what each outcome does to a job and its run.
func TestEachOutcomeChangesItsJob(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	repeat := func(n int, steps ...step) (all []step) {
		for range n {
			all = append(all, steps...)
		}
		return all
	}
	const none = "none"
	queued := runRow{Status: "running", Total: 1, Started: true}
	running := runRow{Status: "running", Total: 1, Running: 1, Started: true}
	completed := runRow{Status: "completed", Total: 1, Completed: 1, Started: true, Finished: true}
	failed := runRow{Status: "failed", Total: 1, Failed: 1, Started: true, Finished: true}
	canceled := runRow{Status: "canceled", Total: 1, Canceled: 1, Started: true, Finished: true}
	for _, test := range []struct {
		name  string
		steps []step
		run   runRow
		code  string // of the failed job
	}{
		{"completed, repeated", []step{{do: "claim"}, {do: "completed", want: "settled"}, {do: "completed", want: "settled"},
			{do: "failed", want: "stale"}, {do: "retry", want: "stale"}, {do: "renew", want: "lost"}}, completed, ""},
		{"failed, repeated", []step{{do: "claim"}, {do: "failed", want: "settled"}, {do: "failed", want: "settled"},
			{do: "completed", want: "stale"}}, failed, "code"},
		{"not claimed", []step{{do: "completed", attempt: 1, want: "stale"}, {do: "renew", attempt: 1, want: "lost"}},
			runRow{Status: "queued", Total: 1}, ""},
		{"another attempt", []step{{do: "claim"}, {do: "completed", attempt: 2, want: "stale"}, {do: "renew", attempt: 2, want: "lost"}}, running, ""},
		{"renewed", []step{{do: "claim"}, {do: "renew", want: "held"}, {do: "completed", want: "settled"}}, completed, ""},
		{"lost", []step{{do: "claim"}, {do: "pass"}, {do: "completed", want: "stale"}, {do: "renew", want: "lost"}}, running, ""},
		{"lost, swept", []step{{do: "claim"}, {do: "pass"}, {do: "sweep"}, {do: "completed", want: "stale"}, {do: "renew", want: "lost"}}, queued, ""},
		{"lost, claimed again", []step{{do: "claim"}, {do: "pass"}, {do: "sweep"}, {do: "claim", want: "claimed"}, {do: "completed", attempt: 1, want: "stale"},
			{do: "completed", want: "settled"}, {do: "completed", attempt: 1, want: "stale"}}, completed, ""},
		{"lost four times", append(repeat(4, step{do: "claim", want: "claimed"}, step{do: "pass"}, step{do: "sweep"}), step{do: "claim", want: none},
			step{do: "failed", want: "stale"}), failed, "lease_expired"},
		{"released", []step{{do: "claim"}, {do: "released", want: "settled"}, {do: "claim", want: "claimed"}, {do: "released", attempt: 1, want: "settled"},
			{do: "completed", attempt: 1, want: "stale"}, {do: "released", attempt: 1 + 1<<16, want: "stale"}, {do: "completed", want: "settled"},
			{do: "released", attempt: 1, want: "settled"}, {do: "completed", attempt: 1, want: "stale"}}, completed, ""},
		{"released fifty times", []step{{do: "claim"}, {do: "released"}, {do: "47 claims"}, {do: "claim", want: "claimed"}, {do: "released", want: "settled"},
			{do: "claim", want: "claimed"}, {do: "released", want: "settled"}, {do: "claim", want: none}, {do: "released", want: "settled"},
			{do: "failed", want: "stale"}}, failed, "too_many_claims"},
		{"throttled", []step{{do: "claim"}, {do: "throttled", want: "settled"}, {do: "claim", want: none}, {do: "throttled", want: "settled"},
			{do: "pass"}, {do: "claim", want: "claimed"}}, running, ""},
		{"retried", []step{{do: "claim"}, {do: "retry", want: "settled"}, {do: "claim", want: none}, {do: "pass"}, {do: "claim", want: "claimed"},
			{do: "retry", attempt: 1, want: "settled"}, {do: "released", attempt: 1, want: "stale"}}, running, ""},
		{"retried four times", append(repeat(4, step{do: "claim", want: "claimed"}, step{do: "retry", want: "settled"}, step{do: "pass"}, step{do: "pass"}),
			step{do: "claim", want: none}, step{do: "retry", want: "settled"}, step{do: "failed", want: "stale"}), failed, "code"},
		{"canceled", []step{{do: "claim"}, {do: "cancel"}, {do: "renew", want: "canceled"}, {do: "completed", want: "canceled"}, {do: "sweep"},
			{do: "completed", want: "canceled"}, {do: "renew", want: "canceled"}}, canceled, ""},
		{"canceled while queued", []step{{do: "cancel"}, {do: "claim", want: none}, {do: "completed", attempt: 1, want: "canceled"}},
			runRow{Status: "canceled", Total: 1, Canceled: 1, Finished: true}, ""},
		{"canceled after an attempt", []step{{do: "claim"}, {do: "released", want: "settled"}, {do: "cancel"}, {do: "claim", want: none},
			{do: "released", want: "settled"}, {do: "retry", want: "stale"}}, canceled, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := s.account(t)
			run := s.createRun(t, a, []string{"m1"}, 1, 1)
			job := jobs.Job{Key: jobs.Key{Account: a, Run: run, Ordinal: 1}}
			for i, st := range test.steps {
				got := ""
				on := job
				if st.attempt > 0 {
					on.Attempt = st.attempt
				}
				switch st.do {
				case "claim":
					got = none
					if all := claim(t, d, 10); len(all) == 1 && all[0].Key == job.Key {
						job, got = all[0], "claimed"
					}
				case "pass":
					s.pass(t, 61*time.Second)
				case "47 claims":
					s.exec(t, `UPDATE job_leases SET attempt = attempt + 47 WHERE run_id = $1`, run)
				case "sweep":
					sweep(t, d)
				case "cancel":
					s.cancel(t, run)
				case "renew":
					got = renew(t, d, time.Minute, on)[0]
				default:
					got = settle(t, d, st.do, on)[0]
				}
				if st.want != "" && got != st.want {
					t.Fatalf("step %d, %s: %s, want %s", i, st.do, got, st.want)
				}
			}
			equal(t, test.run, s.run(t, run), "the run")
			var code string
			must(t, s.pool.QueryRow(t.Context(), `SELECT COALESCE((SELECT error_code FROM job_results WHERE run_id = $1), '')`, run).Scan(&code))
			if code != test.code {
				t.Errorf("the job failed with %q, want %q", code, test.code)
			}
			s.check(t)
			s.cancel(t, run)
			s.exec(t, `DELETE FROM provider_throttles`)
			equal(t, 0, len(claim(t, d, 10)), "jobs of a canceled run were claimed")
		})
	}
}

// TestJobsOfAClaimPartWays: the jobs of one claim part ways, and each keeps its own state.
func TestJobsOfAClaimPartWays(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 10, 1)
	all := claim(t, d, 10)
	settle(t, d, jobs.Completed, all[4])
	settle(t, d, jobs.Released, all[0], all[1], all[7])
	settle(t, d, jobs.Failed, all[9], all[2])
	s.check(t)
	equal(t, []string{"held", "lost", "held", "held"}, renew(t, d, time.Hour, all[3], all[4], all[5], all[8]))
	s.pass(t, 2*time.Minute) // job 7, which was not renewed, is lost
	sweep(t, d)
	s.check(t)
	again := claim(t, d, 10)
	var got []string
	for _, j := range again {
		got = append(got, fmt.Sprint(j.Key.Ordinal, ":", j.Attempt))
	}
	equal(t, []string{"1:2", "2:2", "7:2", "8:2"}, got, "ordinals and attempts of the jobs that came back")
	settle(t, d, jobs.Completed, append(again, all[3], all[5], all[8])...)
	s.check(t)
	equal(t, runRow{Status: "partial", Total: 10, Completed: 8, Failed: 2, Started: true, Finished: true},
		s.run(t, run))
	want := jobs.Stats{
		Claimed: map[string]uint64{"p1": 14}, Expired: map[string]uint64{"p1": 1},
		Settlements: map[string]map[jobs.Outcome]uint64{"p1": {jobs.Completed: 8, jobs.Released: 3, jobs.Failed: 2}},
		Usage:       map[string]jobs.Usage{},
	}
	stats := d.Stats()
	stats.Started = want.Started
	equal(t, want, stats, "counts")
}

// renew renews the leases of jobs and returns their states.
func renew(t testing.TB, d *jobs.Dispatcher, lease time.Duration, all ...jobs.Job) (states []string) {
	t.Helper()
	var renewals []jobs.Renewal
	for _, j := range all {
		renewals = append(renewals, jobs.Renewal{Key: j.Key, Attempt: j.Attempt})
	}
	replies, err := d.Renew(t.Context(), jobs.Reporter{}, lease, renewals)
	must(t, err)
	for _, r := range replies {
		states = append(states, r.State)
	}
	return states
}

// TestUnknownJobs: ids that name no job of an existing run are stale, and their neighbors are settled.
func TestUnknownJobs(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	a := s.account(t)
	s.createRun(t, a, []string{"m1"}, 1, 1)
	j := claim(t, d, 1)[0]
	unknown := j
	unknown.Key.Ordinal = 2
	other := j
	other.Key.Account = s.account(t)
	equal(t, []string{"stale", "stale", "stale", "settled"},
		settle(t, d, jobs.Completed, unknown, other, jobs.Job{Attempt: 1}, j))
}

// TestRepeatedInOneBatch: settlements that are repeated in one transaction are settled again, with another outcome
// stale.
func TestRepeatedInOneBatch(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	for _, n := range []int{3, 30} { // inserted and copied
		s.createRun(t, s.account(t), []string{"m1"}, n, 1)
		claimed := claim(t, d, n)
		all := func(outcomes ...jobs.Outcome) (request []jobs.Settlement) {
			for i, j := range claimed {
				request = append(request, settlement(j, outcomes[i%len(outcomes)]))
			}
			return request
		}
		replies, err := d.SettleTogether(t.Context(), all(jobs.Completed, jobs.Failed, jobs.Released), all(jobs.Completed, jobs.Failed, jobs.Released),
			all(jobs.Failed, jobs.Released, jobs.Completed))
		must(t, err)
		for i, want := range []string{jobs.Settled, jobs.Settled, jobs.Stale} {
			for j, reply := range replies[i] {
				if reply.State != want {
					t.Errorf("job %d of %d in request %d is %s, want %s", j+1, n, i+1, reply.State, want)
				}
			}
		}
		s.check(t)
		settle(t, d, jobs.Completed, claim(t, d, n)...)
	}
}

// TestResultsAreWritten: results contain what was settled, whether inserted or copied. If one row cannot be written,
// none is, and the settlement can be repeated.
func TestResultsAreWritten(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	type row struct {
		Ordinal             int32
		Attempts            int16
		Settled, Canceled   bool
		Answer              *string
		Code, Message       *string
		Started, OneInstant bool
	}
	for _, n := range []int{3, 120} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			run := s.createRun(t, s.account(t), []string{"m1"}, n/3, 3)
			settle(t, d, jobs.Released, claim(t, d, 1)...) // the first job has two attempts, of which the first one starts the run
			claimed := claim(t, d, n)
			slices.SortFunc(claimed, func(a, b jobs.Job) int { return int(a.Key.Ordinal - b.Key.Ordinal) })
			var want []row
			var settlements []jobs.Settlement
			for i, j := range claimed {
				w := settlement(j, jobs.Completed)
				r := row{Ordinal: int32(i + 1), Attempts: 1, Settled: true, Started: true, OneInstant: true}
				switch i % 3 {
				case 0:
					w.Answer.Text = strings.Repeat("perché 日本 😀", 1<<(i%13))
					r.Answer = new(string(w.Answer.AppendStored(nil)))
				case 1:
					w = settlement(j, jobs.Failed)
					w.ErrorMessage = "" // and not NULL
					r.Code, r.Message = &w.ErrorCode, &w.ErrorMessage
				default:
					r.Answer = new(string(w.Answer.AppendStored(nil)))
				}
				settlements, want = append(settlements, w), append(want, r)
			}
			want[0].Attempts = 2

			s.exec(t, `INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at)
				VALUES ($1, $2, 2, 1, true, now(), now())`, claimed[0].Key.Account, run)
			if _, err := d.Settle(t.Context(), jobs.Reporter{}, settlements); err == nil {
				t.Error("a second result of one job was written")
			}
			s.exec(t, `DELETE FROM job_results WHERE run_id = $1 AND ordinal = 2`, run)
			equal(t, 0, s.count(t, `SELECT count(*) FROM job_results WHERE run_id = $1`, run),
				"results of the failed transaction are there")

			equal(t, slices.Repeat([]string{jobs.Settled}, n), settleAs(t, d, jobs.Reporter{}, settlements...))
			rows, err := s.pool.Query(t.Context(), `
SELECT e.ordinal, e.attempts, e.settled, e.canceled, e.answer, e.error_code, e.error_message, (e.started_at = r.started_at) = (e.ordinal = 1) AND e.started_at < e.finished_at,
  e.finished_at = r.finished_at
FROM job_results e JOIN measurement_runs r ON r.account_id = e.account_id AND r.id = e.run_id WHERE r.id = $1 ORDER BY 1`, run)
			must(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
			must(t, err)
			equal(t, want, got)
			s.check(t)
		})
	}
}

// TestAwayStandby: a claim that finds no jobs does not wait for a synchronous standby that is away. A settlement that is
// repeated because the standby did not confirm the first one waits for the standby, too.
func TestAwayStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	s := newSiteAt(t, primary.URL())
	d, impatient := s.dispatcher(t), jobs.New(jobs.Config{Pool: s.pool, Timeout: time.Second, MaxWaiting: 10})
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	held := claim(t, d, 1)
	s.awaitStandby(t)
	for try := range 2 {
		got, err := impatient.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{settlement(held[0], jobs.Completed)})
		if err == nil {
			t.Errorf("settlement %d is acknowledged: %v", try+1, got)
		}
	}
	for range 33 { // nextval writes WAL once for 33 numbers
		claim(t, d, 1)
	}
	s.setStandby(t, "")
	equal(t, []string{jobs.Settled}, settle(t, d, jobs.Completed, held...))
	s.check(t)
}

// awaitStandby makes commits wait for a synchronous standby that does not exist.
func (s *site) awaitStandby(t *testing.T) {
	t.Helper()
	s.setStandby(t, "lost")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // until a commit waits
		for ctx.Err() == nil {
			s.pool.Exec(ctx, `SELECT pg_logical_emit_message(true, 'test', '')`)
		}
	}()
	storetest.Eventually(t, "a commit waits for the standby", func() bool {
		return s.count(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) > 0
	})
}

func (s *site) setStandby(t *testing.T, name string) {
	t.Helper()
	s.exec(t, `ALTER SYSTEM SET synchronous_standby_names = '`+name+`'`)
	s.exec(t, `SELECT pg_reload_conf()`)
}

// TestLargeSettlementsAreSplit: a settlement of large answers takes several transactions.
func TestLargeSettlementsAreSplit(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	var large []jobs.Settlement
	for _, j := range claim(t, d, 2) {
		l := settlement(j, jobs.Completed)
		l.Answer.Text = strings.Repeat("x", 600<<10)
		large = append(large, l)
	}
	equal(t, []string{jobs.Settled, jobs.Settled}, settleAs(t, d, jobs.Reporter{}, large...))
	equal(t, 2, d.Reports(), "parts")
}

// TestStartedCountsFirstClaims: each job is counted as started with the age of its run, and not again when it is
// claimed again.
func TestStartedCountsFirstClaims(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 3, 1)
	s.exec(t, `UPDATE measurement_runs SET created_at = now() - interval '2 min'`)
	settle(t, d, jobs.Released, claim(t, d, 2)...)
	claim(t, d, 3)
	var want jobs.Histogram
	want.Counts[slices.Index(jobs.StartedBounds[:], 5*time.Minute)] = 3
	got := d.Stats().Started
	equal(t, 6*time.Minute, got.Sum.Truncate(time.Minute), "sum of the waits")
	equal(t, want.Counts, got.Counts)
}

// TestPartOfGivenBackJobs: of jobs that were given back together, those that a claim leaves keep their attempt, tries
// and start.
func TestPartOfGivenBackJobs(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 3, 1)
	claim(t, d, 3)
	s.pass(t, 2*time.Minute)
	sweep(t, d)
	claim(t, d, 1)
	claim(t, d, 2)
	if n := s.count(t, `
SELECT COALESCE(sum(l.last_ordinal - l.ordinal + 1), 0) FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
WHERE l.state = 'held' AND l.attempt = 2 AND l.tries = 1 AND l.started_at = r.started_at`); n != 3 {
		t.Errorf("%d jobs are held by a second attempt, after one try, since the start of the run; want 3", n)
	}
}

// TestRevokedWorkerChangesNothing: a revoked worker gets no job, and its reports change nothing. The requests of others in the same
// transaction are served.
func TestRevokedWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	run := s.createRun(t, s.account(t), []string{"m1"}, 3, 1)
	revoked, other := s.worker(t), s.worker(t)
	held := claim(t, d, 2)
	s.exec(t, `UPDATE workers SET revoked_at = now() WHERE id = $1`, revoked)

	request := func(worker store.ID) *jobs.ClaimRequest {
		return &jobs.ClaimRequest{Worker: worker, Limit: 5, Lease: time.Minute}
	}
	claimed, errs, err := d.ClaimTogether(t.Context(), request(revoked), request(other))
	must(t, err)
	if len(claimed[0]) != 0 || errs[0] != auth.ErrUnknownWorker || len(claimed[1]) != 1 || errs[1] != nil {
		t.Errorf("claims: %d and %d jobs, %v", len(claimed[0]), len(claimed[1]), errs)
	}
	from := []jobs.Reporter{{Worker: revoked}, {Worker: other}}
	replies, errs, err := d.SettleFrom(t.Context(), from, []jobs.Settlement{settlement(held[0], jobs.Completed)}, []jobs.Settlement{settlement(held[1], jobs.Completed)})
	must(t, err)
	if replies[0] != nil || errs[0] != auth.ErrUnknownWorker || len(replies[1]) != 1 || replies[1][0].State != jobs.Settled || errs[1] != nil {
		t.Errorf("settlements: %v, %v", replies, errs)
	}
	if _, err := d.Renew(t.Context(), from[0], time.Hour, []jobs.Renewal{{Key: held[0].Key, Attempt: 1}}); err != auth.ErrUnknownWorker {
		t.Errorf("a renewal: %v", err)
	}
	if _, err := d.Settle(t.Context(), from[0], []jobs.Settlement{settlement(held[0], jobs.Released)}); err != auth.ErrUnknownWorker {
		t.Errorf("a settlement: %v", err)
	}
	equal(t, 1, s.run(t, run).Completed, "jobs are completed")
}

// TestRevokedDuringLock: a claim gets no jobs if its worker is revoked while it waits for another claim.
func TestRevokedDuringLock(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	worker := s.worker(t)
	stop := newStopper(jobs.LockClaims)
	other := s.processOn(t, storetest.WithTracer(t, s.pool, stop))
	first := goClaim(t.Context(), other, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute})
	<-stop.stopped
	second := goClaim(t.Context(), d, &jobs.ClaimRequest{Worker: worker, Limit: 1, Lease: time.Minute})
	storetest.UntilWaiting(t, s.pool, "advisory")
	s.exec(t, `UPDATE workers SET revoked_at = now()`)
	close(stop.release)
	if a := <-first; a.err != nil || len(a.jobs) != 1 {
		t.Errorf("the first claim: %d jobs, %v", len(a.jobs), a.err)
	}
	if a := <-second; a.err != auth.ErrUnknownWorker || len(a.jobs) != 0 {
		t.Errorf("the claim of the revoked worker: %d jobs, %v", len(a.jobs), a.err)
	}
}

// TestFailedCountSettlesNothing: a job is settled together with what is counted in its answer and with what its final
// run brings about, or not at all.
func TestFailedCountSettlesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fault := errors.New("fault")
	var countFault, finishedFault error
	d := jobs.New(jobs.Config{
		Pool: s.pool, Timeout: time.Minute, MaxWaiting: 10, Log: slog.New(slog.DiscardHandler),
		Count:    func(context.Context, store.Tx, *pgx.Batch, []jobs.Ended) error { return countFault },
		Prepare:  func(ended []jobs.Ended) []any { return make([]any, len(ended)) },
		Finished: func(context.Context, store.Tx, []runs.Run) error { return finishedFault },
	})
	t.Cleanup(d.Stop)
	run := s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	claimed := claim(t, d, 1)
	running := runRow{Status: "running", Total: 1, Running: 1, Started: true}
	for _, faults := range [][2]error{{fault, nil}, {nil, fault}} {
		countFault, finishedFault = faults[0], faults[1]
		_, err := d.Settle(t.Context(), jobs.Reporter{}, []jobs.Settlement{settlement(claimed[0], jobs.Completed)})
		if got := s.run(t, run); !errors.Is(err, fault) || got != running {
			t.Errorf("%v: settled with %v, the run is %+v", faults, err, got)
		}
		equal(t, 0, s.count(t, `SELECT count(*) FROM job_results`), faults, ": results")
	}
	countFault, finishedFault = nil, nil
	equal(t, []string{jobs.Settled}, settle(t, d, jobs.Completed, claimed...), "afterwards")
}
