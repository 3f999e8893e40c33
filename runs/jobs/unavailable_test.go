package jobs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"

	"github.com/google/go-cmp/cmp"
)

func unavailable(j jobs.Job, reason, message string) jobs.Settlement {
	return jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Unavailable, ErrorCode: reason, ErrorMessage: message}
}

// settleAs settles jobs as a worker and returns their states.
func settleAs(t testing.TB, d *jobs.Dispatcher, from jobs.Reporter, all ...jobs.Settlement) (states []string) {
	t.Helper()
	replies, err := d.Settle(t.Context(), from, all)
	must(t, err)
	for _, r := range replies {
		states = append(states, r.State)
	}
	return states
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
	s := newSite(t)
	d := s.dispatcher(t)
	admin := &jobs.ProviderAdmin{Pool: s.pool, Actor: "op"}
	run := s.createRun(t, s.account(t), []string{"m1", "m2"}, 3, 1)
	w1, w2 := s.worker(t), s.worker(t)
	first, second := jobs.Reporter{Worker: w1}, jobs.Reporter{Worker: w2}
	claimed := claim(t, d, 3, "p1")
	report := unavailable(claimed[0], "secret", "The key is rejected.")
	if states := settleAs(t, d, first, report); !slices.Equal(states, []string{jobs.Settled}) {
		t.Fatal(states)
	}
	want := pauseRow{"The key is rejected.", "secret", w1.Text("wrk")}
	if diff := cmp.Diff(want, s.pauseOf(t, "p1")); diff != "" {
		t.Error(diff)
	}
	if got := claim(t, d, 10); len(got) != 3 || got[0].Provider != "p2" {
		t.Errorf("%d jobs are handed out, want those of the other provider", len(got))
	}
	if r := s.run(t, run); r.Running != 5 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}

	// The first report holds, and other leases can be settled.
	if states := settleAs(t, d, second, unavailable(claimed[1], "contract", "No credit."), settlement(claimed[2], jobs.Completed)); !slices.Equal(states, []string{jobs.Settled, jobs.Settled}) {
		t.Error(states)
	}
	if diff := cmp.Diff(want, s.pauseOf(t, "p1")); diff != "" {
		t.Error(diff)
	}
	states, err := jobs.ProviderStates(t.Context(), s.pool)
	must(t, err)
	if got, want := states[0].Blocked(), "the provider is paused (secret): The key is rejected.; then run aiv providers resume p1 -note TEXT"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	backlogs, err := jobs.ReadBacklogs(t.Context(), s.pool)
	must(t, err)
	if diff := cmp.Diff(jobs.ProviderBacklog{Code: "p1", Paused: true, Unavailable: new("secret"), Waiting: 2}, backlogs[0]); diff != "" {
		t.Error(diff)
	}

	must(t, admin.Resume(t.Context(), "p1", "a new key"))
	if states := settleAs(t, d, first, report); !slices.Equal(states, []string{jobs.Settled}) || s.pauseOf(t, "p1") != (pauseRow{}) {
		t.Errorf("repeated after the resume: %v, %+v", states, s.pauseOf(t, "p1"))
	}
	again := claim(t, d, 10)
	if len(again) != 2 || again[0].Attempt != 2 {
		t.Errorf("%+v", again)
	}
	if states := settleAs(t, d, first, unavailable(claimed[1], "secret", "x"), unavailable(claimed[2], "secret", "x")); !slices.Equal(states, []string{jobs.Settled, jobs.Stale}) || s.pauseOf(t, "p1") != (pauseRow{}) {
		t.Errorf("after other attempts: %v, %+v", states, s.pauseOf(t, "p1"))
	}

	// An operator's pause replaces a worker's, and stays when a worker reports again.
	settleAs(t, d, first, unavailable(again[0], "configuration", "The region is not served."))
	must(t, admin.Pause(t.Context(), "p1", "known"))
	settleAs(t, d, first, unavailable(again[1], "secret", "x"))
	if diff := cmp.Diff(pauseRow{Note: "known", By: "op"}, s.pauseOf(t, "p1")); diff != "" {
		t.Error(diff)
	}
	var audited []string
	rows, err := s.pool.Query(t.Context(), `
SELECT actor || ' ' || action || ' ' || subject || ' ' || detail FROM audit_log ORDER BY id`)
	must(t, err)
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		audited = append(audited, line)
	}
	must(t, rows.Err())
	if diff := cmp.Diff([]string{
		w1.Text("wrk") + ` providers.unavailable p1 {"reason": "secret", "message": "The key is rejected."}`,
		`op providers.resume p1 {"note": "a new key"}`,
		w1.Text("wrk") + ` providers.unavailable p1 {"reason": "configuration", "message": "The region is not served."}`,
		`op providers.pause p1 {"note": "known"}`,
	}, audited); diff != "" {
		t.Error(diff)
	}
	s.check(t)
}

// TestUnavailableIsFenced: an attempt that does not hold its job pauses nothing, nor does a worker that may not have
// it.
func TestUnavailableIsFenced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	s.createRun(t, s.account(t), []string{"m1"}, 2, 1)
	claimed := claim(t, d, 2)
	stale := claimed[0]
	stale.Attempt = 2
	for _, test := range []struct {
		name string
		from jobs.Reporter
		job  jobs.Job
		want string
	}{
		{"another attempt", jobs.Reporter{}, stale, jobs.Stale},
		{"another provider's worker", jobs.Reporter{Providers: []string{"p2"}}, claimed[0], jobs.Stale},
	} {
		if states := settleAs(t, d, test.from, unavailable(test.job, "secret", "x")); states[0] != test.want || s.pauseOf(t, "p1") != (pauseRow{}) {
			t.Errorf("%s: %v, %+v", test.name, states, s.pauseOf(t, "p1"))
		}
	}
	canceled := s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	late := claim(t, d, 1)[0]
	s.cancel(t, canceled)
	if states := settleAs(t, d, jobs.Reporter{}, unavailable(late, "secret", "x")); states[0] != jobs.Canceled || s.pauseOf(t, "p1") != (pauseRow{}) {
		t.Errorf("canceled: %v, %+v", states, s.pauseOf(t, "p1"))
	}
	s.check(t)
}

// TestClaimAfterUnavailable: once the pause is committed no claim hands out a job of the provider, even one that began
// before: it waits for the transaction that pauses.
func TestClaimAfterUnavailable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
	s.createRun(t, s.account(t), []string{"m1"}, 200, 1)
	held := claim(t, d, 8)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	paused := make(chan struct{})
	late := make(chan int)
	for range 4 {
		go func() {
			for {
				before := isClosed(paused)
				got, err := d.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Limit: 1, Lease: time.Minute})
				if err != nil || before {
					late <- len(got)
					return
				}
			}
		}()
	}
	settleAs(t, d, jobs.Reporter{}, unavailable(held[0], "secret", "x"))
	close(paused)
	for range 4 {
		if n := <-late; n > 0 {
			t.Errorf("%d jobs were handed out after the pause", n)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestUsageIsCounted: the statistics add up what workers report of answers that took effect.
func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := s.dispatcher(t)
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
		total.InputTokens, total.OutputTokens, total.Searches = total.InputTokens+u.InputTokens, total.OutputTokens+u.OutputTokens, total.Searches+u.Searches
	}
	if want := (jobs.Usage{InputTokens: 30, OutputTokens: 6}); total != want {
		t.Errorf("%+v, want %+v", total, want)
	}
}
