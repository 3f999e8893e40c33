package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// TestSmallAccountIsServedSoon: 6 jobs of one account come within two claims of 10 while 100,000 of another wait, and turns go on
// across claims of 1.
func TestSmallAccountIsServedSoon(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	large, small := s.account(t), s.account(t)
	for range 5 {
		s.createRun(t, large, []string{"m1", "m2"}, 100, 100) // 20,000 jobs
	}
	claim(t, d, 100)
	s.createRun(t, small, []string{"m1"}, 6, 1)
	got := append(claim(t, d, 10), claim(t, d, 10)...)
	equal(t, 20, len(got), "jobs of two claims")
	equal(t, 6, countOf(small, got), "of them of the small run")
	s.createRun(t, small, []string{"m2"}, 6, 1)
	wantTurns(t, d, small)
}

// countOf returns how many jobs are of an account.
func countOf(account store.ID, all []jobs.Job) (n int) {
	for _, j := range all {
		if j.Key.Account == account {
			n++
		}
	}
	return n
}

// wantTurns claims one job at a time, and fails the test unless each second one is of an account.
func wantTurns(t *testing.T, d *jobs.Dispatcher, account store.ID) {
	t.Helper()
	var of []bool
	for range 8 {
		of = append(of, claim(t, d, 1)[0].Key.Account == account)
	}
	equal(t, []bool{false, true, false, true, false, true, false, true}, of, "turns of claims of 1")
}

// TestLoneAccountWritesOneTurn: a claim of an account that is alone writes its turn at the provider that served it only, and an account
// that arrives later is served in turn.
func TestLoneAccountWritesOneTurn(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	first := s.account(t)
	s.createRun(t, first, []string{"m1", "m2"}, 100, 1)
	claim(t, d, 2)
	rows := func() int {
		return s.count(t, `SELECT count(DISTINCT xmin::text) FROM job_turns WHERE account_id = $1`, first)
	}
	for range 3 {
		claim(t, d, 2)
		equal(t, 2, rows(), "transactions that wrote turns of the account")
	}
	second := s.account(t)
	s.createRun(t, second, []string{"m1"}, 100, 1)
	wantTurns(t, d, second)
}

// TestClosedProvider: while the jobs of a provider cannot be claimed, those of another provider are handed out as if
// the former had none: to all accounts in turn, of the same runs as well, to claims of all providers and to claims that
// list both.
func TestClosedProvider(t *testing.T) {
	t.Parallel()
	limit := func(perMinute, inFlight *int) func(t *testing.T, s *site, a *jobs.ProviderAdmin) {
		return func(t *testing.T, s *site, _ *jobs.ProviderAdmin) { s.setLimits(t, "p1", perMinute, inFlight) }
	}
	for _, test := range []struct {
		name        string
		close, open func(t *testing.T, s *site, a *jobs.ProviderAdmin)
	}{
		{"paused", func(t *testing.T, _ *site, a *jobs.ProviderAdmin) { must(t, a.Pause(t.Context(), "p1", "test")) },
			func(t *testing.T, _ *site, a *jobs.ProviderAdmin) { must(t, a.Resume(t.Context(), "p1", "test")) }},
		{"throttled", func(t *testing.T, s *site, _ *jobs.ProviderAdmin) {
			s.exec(t, `INSERT INTO provider_throttles (provider_code, until) VALUES ('p1', now() + interval '1 hour')`)
		}, func(t *testing.T, s *site, _ *jobs.ProviderAdmin) { s.pass(t, time.Hour) }},
		{"unmet", func(t *testing.T, s *site, _ *jobs.ProviderAdmin) {
			s.exec(t, `UPDATE provider_dependencies SET met = false WHERE provider_code = 'p1' AND dependency = 'legal_approval'`)
		}, func(t *testing.T, s *site, _ *jobs.ProviderAdmin) {
			s.exec(t, `UPDATE provider_dependencies SET met = true`)
		}},
		{"no claims in this minute", limit(new(0), nil), limit(nil, nil)},
		{"no leases", limit(nil, new(0)), limit(nil, nil)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			d, admin := s.dispatcher(t), &jobs.ProviderAdmin{Pool: s.pool, Actor: "test"}
			test.close(t, s, admin)
			large, small := s.account(t), s.account(t)
			for range 50 { // older jobs of p1 than a claim reads
				s.createRun(t, large, []string{"m1"}, 100, 20)
			}
			s.createRun(t, large, []string{"m1", "m2"}, 100, 20)
			s.createRun(t, small, []string{"m1", "m2"}, 6, 1)
			for _, providers := range [][]string{nil, {"p1", "p2"}} {
				got := make(map[string]int)
				for _, j := range claim(t, d, 6, providers...) {
					got[fmt.Sprintf("small=%t %s", j.Key.Account == small, j.Provider)]++
				}
				equal(t, map[string]int{"small=true p2": 3, "small=false p2": 3}, got, "claimed of ", providers)
			}
			test.open(t, s, admin)
			got := make(map[string]int)
			for _, j := range claim(t, d, 12) {
				got[fmt.Sprintf("small=%t", j.Key.Account == small)]++
			}
			equal(t, map[string]int{"small=true": 6, "small=false": 6}, got, "when it is open again")
		})
	}
}

// TestTurnsOfListedProviders: claims of one job that list several providers serve the accounts in turn, although they
// read few accounts of each provider and one account has jobs at more of them.
func TestTurnsOfListedProviders(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	both, first, second := s.account(t), s.account(t), s.account(t)
	s.createRun(t, both, []string{"m1", "m2"}, 20, 1)
	s.createRun(t, first, []string{"m1"}, 20, 1)
	s.createRun(t, second, []string{"m2"}, 20, 1)
	served := make(map[store.ID]int)
	ofBoth := make(map[string]int)
	for range 10 {
		round := make(map[store.ID]bool)
		for range 3 {
			j := claim(t, d, 1, "p1", "p2")[0]
			served[j.Key.Account]++
			round[j.Key.Account] = true
			if j.Key.Account == both {
				ofBoth[j.Provider]++
			}
		}
		if len(round) != 3 {
			t.Fatalf("three claims served %d of 3 accounts; so far %v", len(round), served)
		}
	}
	if ofBoth["p1"] < 3 || ofBoth["p2"] < 3 {
		t.Errorf("of the account with jobs at both providers, these were served: %v", ofBoth)
	}
}

// TestTurnsWithoutJobs: an account whose jobs were all handed out or canceled takes no place in a claim from an account
// that has jobs, and its turns are deleted.
func TestTurnsWithoutJobs(t *testing.T) {
	t.Parallel()
	for _, providers := range [][]string{nil, {"p1"}} {
		t.Run(fmt.Sprint(providers), func(t *testing.T) {
			s, d := start(t)
			served, canceled, last := s.account(t), s.account(t), s.account(t)
			want := func(account store.ID) {
				t.Helper()
				if got := claim(t, d, 1, providers...); len(got) != 1 || got[0].Key.Account != account {
					t.Errorf("claimed %+v, want a job of %s", got, account)
				}
			}
			s.createRun(t, served, []string{"m1"}, 1, 1)
			want(served)
			run := s.createRun(t, canceled, []string{"m1"}, 2, 1)
			want(canceled)
			s.cancel(t, run)
			s.createRun(t, last, []string{"m1"}, 3, 1)
			for range 3 {
				want(last)
			}
			equal(t, 0, len(claim(t, d, 1, providers...)), "jobs without an account")
			equal(t, 0, s.count(t, `SELECT count(*) FROM job_turns`), "turns of accounts without jobs are left")
		})
	}
}

// TestTurnOfAccountWithMoreSpans: an account keeps its turn if a claim gets all spans that it has read of it, and there
// are more. Its oldest runs come first.
func TestTurnOfAccountWithMoreSpans(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	s.createRun(t, s.account(t), []string{"m1"}, 1, 1)
	account := s.account(t)
	var created []store.ID
	for range 40 {
		created = append(created, s.createRun(t, account, []string{"m1"}, 1, 1))
	}
	for _, what := range []string{"queued", "given back"} {
		var all []jobs.Job
		var order []store.ID
		for len(all) < 41 {
			got := claim(t, d, 20)
			if len(got) == 0 {
				t.Fatalf("a claim got nothing, although %d jobs wait", 41-len(all))
			}
			for _, j := range got {
				if all = append(all, j); j.Key.Account == account {
					order = append(order, j.Key.Run)
				}
			}
		}
		equal(t, created, order, "order of the runs whose jobs were ", what)
		if what == "queued" {
			settle(t, d, jobs.Released, all...)
		}
	}
	equal(t, 0, s.count(t, `SELECT count(*) FROM job_turns`), "turns of accounts without jobs are left")
}

// A counter counts batches, and their statements that waited for a lock in vain.
type counter struct {
	storetest.Statements
	batches, timeouts atomic.Int32
}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.batches.Add(1)
	return ctx
}

func (c *counter) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if store.IsLockTimeout(q.Err) {
		c.timeouts.Add(1)
	}
}

// TestManyTurnsWithoutJobs: the turns of many accounts whose runs were canceled cost a small claim few round trips.
func TestManyTurnsWithoutJobs(t *testing.T) {
	t.Parallel()
	s := newSiteAt(t, storetest.URL(t))
	const accounts = 60
	var canceled []store.ID
	for range accounts {
		canceled = append(canceled, s.createRun(t, s.account(t), []string{"m1"}, 2, 1))
	}
	d := s.dispatcher(t)
	claim(t, d, 1)
	for _, id := range canceled {
		s.cancel(t, id)
	}
	account := s.account(t)
	s.createRun(t, account, []string{"m1"}, 1, 1)

	tracer := &counter{}
	d = jobs.New(jobs.Config{Pool: storetest.WithTracer(t, s.pool, tracer), Timeout: 20 * time.Second, MaxWaiting: 1000, Log: slog.New(slog.DiscardHandler)})
	if got := claim(t, d, 1); len(got) != 1 || got[0].Key.Account != account {
		t.Errorf("claimed %+v, want a job of %s", got, account)
	}
	if n := tracer.batches.Load(); n > 12 {
		t.Errorf("%d batches of statements", n)
	}
	s.check(t)
}

// TestTurnAtNewProvider: an account that is next stays next when a run of it brings jobs of another provider.
func TestTurnAtNewProvider(t *testing.T) {
	t.Parallel()
	s, d := start(t)
	for range 2 {
		s.createRun(t, s.account(t), []string{"m1"}, 10, 1)
	}
	claim(t, d, 2)
	served := claim(t, d, 1)[0].Key.Account
	var next store.ID
	must(t, s.pool.QueryRow(t.Context(), `SELECT id FROM accounts WHERE id <> $1`, served).Scan(&next))
	s.createRun(t, next, []string{"m2"}, 1, 1)
	equal(t, 2, countOf(next, claim(t, d, 3)), "of 3 jobs of the account that was next")
}
