package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"

	"github.com/jackc/pgx/v5"
)

func unavailable(j jobs.Job, reason, message string) jobs.Settlement {
	return jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Unavailable, ErrorCode: reason, ErrorMessage: message}
}

// pauseRow is a row of provider_pauses without the time.
type pauseRow struct{ Note, Reason, By string }

func (s *site) pauseOf(t testing.TB, provider string) (p pauseRow) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), `
SELECT COALESCE(max(note), ''), COALESCE(max(reason), ''), COALESCE(max(paused_by), '') FROM provider_pauses WHERE provider_code = $1`, provider).
		Scan(&p.Note, &p.Reason, &p.By))
	return p
}

// TestUnavailablePausesTheProvider: the job is queued again at once without a try, its provider is paused for every worker until an
// operator resumes it, and leases that others hold stay. A repeated report is settled and pauses nothing, even after
// the pause.
func TestUnavailablePausesTheProvider(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "op"}
	run := s.createRun(t, s.account(t), []string{"m1", "m2"}, 3, 1)
	w1, w2 := s.worker(t), s.worker(t)
	first, second := jobs.Reporter{Worker: w1}, jobs.Reporter{Worker: w2}
	claimed := claim(t, d, 3, "p1")
	report := unavailable(claimed[0], "secret", "The key is rejected.")
	equal(t, []string{jobs.Settled}, settleAs(t, d, first, report))
	want := pauseRow{"The key is rejected.", "secret", w1.Text("wrk")}
	equal(t, want, s.pauseOf(t, "p1"))
	if got := claim(t, d, 10); len(got) != 3 || got[0].Provider != "p2" {
		t.Errorf("%d jobs are handed out, want those of the other provider", len(got))
	}
	equal(t, runRow{Status: "running", Total: 6, Running: 5, Started: true}, s.run(t, run))

	// The first report holds, and other leases can be settled.
	equal(t, []string{jobs.Settled, jobs.Settled},
		settleAs(t, d, second, unavailable(claimed[1], "contract", "No credit."), settlement(claimed[2], jobs.Completed)))
	equal(t, want, s.pauseOf(t, "p1"))
	states, err := jobs.ProviderStates(t.Context(), s.pool)
	must(t, err)
	equal(t, "the provider is paused (secret): The key is rejected.; then run aiv providers resume p1 -note TEXT",
		states[0].Blocked())
	backlogs, err := jobs.ReadBacklogs(t.Context(), s.pool)
	must(t, err)
	equal(t, jobs.ProviderBacklog{Code: "p1", Paused: true, Unavailable: new("secret"), Waiting: 2}, backlogs[0])

	must(t, admin.Resume(t.Context(), "p1", "a new key"))
	equal(t, []string{jobs.Settled}, settleAs(t, d, first, report), "repeated after the resume")
	equal(t, pauseRow{}, s.pauseOf(t, "p1"), "after the resume")
	again := claim(t, d, 10)
	if len(again) != 2 || again[0].Attempt != 2 {
		t.Errorf("%+v", again)
	}
	equal(t, []string{jobs.Settled, jobs.Stale},
		settleAs(t, d, first, unavailable(claimed[1], "secret", "x"), unavailable(claimed[2], "secret", "x")))
	equal(t, pauseRow{}, s.pauseOf(t, "p1"), "after other attempts")

	// An operator's pause replaces a worker's, and stays when a worker reports again.
	settleAs(t, d, first, unavailable(again[0], "configuration", "The region is not served."))
	must(t, admin.Pause(t.Context(), "p1", "known"))
	settleAs(t, d, first, unavailable(again[1], "secret", "x"))
	equal(t, pauseRow{Note: "known", By: "op"}, s.pauseOf(t, "p1"))
	rows, err := s.pool.Query(t.Context(), `
SELECT actor || ' ' || action || ' ' || subject || ' ' || detail FROM audit_log ORDER BY id`)
	must(t, err)
	audited, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	equal(t, []string{
		w1.Text("wrk") + ` providers.unavailable p1 {"reason": "secret", "message": "The key is rejected."}`,
		`op providers.resume p1 {"note": "a new key"}`,
		w1.Text("wrk") + ` providers.unavailable p1 {"reason": "configuration", "message": "The region is not served."}`,
		`op providers.pause p1 {"note": "known"}`,
	}, audited)
}

// TestUnavailableIsFenced: an attempt that does not hold its job pauses nothing, nor does a worker that may not have
// it.
func TestUnavailableIsFenced(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	claimed := claim(t, d, 2)
	stale := claimed[0]
	stale.Attempt = 2
	equal(t, []string{jobs.Stale}, settleAs(t, d, jobs.Reporter{}, unavailable(stale, "secret", "x")), "another attempt")
	equal(t, []string{jobs.Stale}, settleAs(t, d, jobs.Reporter{Providers: []string{"p2"}}, unavailable(claimed[0], "secret", "x")),
		"another provider's worker")
	canceled := s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	late := claim(t, d, 1)[0]
	s.cancel(t, canceled)
	equal(t, []string{jobs.Canceled}, settleAs(t, d, jobs.Reporter{}, unavailable(late, "secret", "x")))
	equal(t, pauseRow{}, s.pauseOf(t, "p1"))
}

// TestClaimAfterUnavailable: once the pause is committed no claim hands out a job of the provider, even one that began
// before: it waits for the transaction that pauses.
func TestClaimAfterUnavailable(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 200, 1)
	held := claim(t, d, 8)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var paused atomic.Bool
	late := make(chan int)
	for range 4 {
		go func() {
			for {
				before := paused.Load()
				got, err := d.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute})
				if err != nil || before {
					late <- len(got)
					return
				}
			}
		}()
	}
	settleAs(t, d, jobs.Reporter{}, unavailable(held[0], "secret", "x"))
	paused.Store(true)
	for range 4 {
		equal(t, 0, <-late, "jobs were handed out after the pause")
	}
}

// TestUsageIsCounted: the statistics add up what workers report of answers that took effect.
func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1", "m2"}, 2, 1)
	for i, j := range claim(t, d, 4) {
		done := settlement(j, jobs.Completed)
		if i > 0 {
			done.Answer.Usage = &answers.Usage{InputTokens: new(int64(10)), OutputTokens: new(int64(i)), Searches: nil}
		}
		settleAs(t, d, jobs.Reporter{}, done)
		settleAs(t, d, jobs.Reporter{}, done) // changes nothing
	}
	var total jobs.Usage
	for _, u := range d.Stats().Usage {
		total.InputTokens += u.InputTokens
		total.OutputTokens += u.OutputTokens
		total.Searches += u.Searches
	}
	equal(t, jobs.Usage{InputTokens: 30, OutputTokens: 6}, total)
}
