package jobs

import (
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestCanceledWhileClaimed: a run is canceled by a transaction for which a claim waits, or which it finds later in its
// transaction. The claim hands out and counts none of the run's jobs, which may also have been queued while the run was
// being canceled. Jobs claimed before become canceled results and keep their attempts.
func TestCanceledWhileClaimed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claimed   int // jobs, before the cancellation
		givenBack bool
		waits     bool // the claim, for the cancellation
	}{
		"jobs that were given back":            {3, true, true},
		"fresh jobs":                           {2, false, true},
		"jobs of a run that has not started":   {0, false, true},
		"jobs of a run that is found canceled": {0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			account := s.account()
			run := s.orderOf(account, "m1 m3", 3, 1)
			if test.claimed == 0 {
				storetest.SkipOnCitus(t, "about locks of one server")
			} else if before := s.claim(test.claimed); test.givenBack {
				s.settle(Released, before...)
			}
			cancel := storetest.Begin(t, s.pool, `SELECT cancel_run($1, $2)`, account, run)
			s.sweep() // queues the jobs
			turn := storetest.Begin(t, s.pool, `SELECT FROM job_turns WHERE NOT $1 FOR UPDATE`, test.waits)
			claim := func() { equal(t, 0, len(s.claim(4)), "jobs of a canceled run are handed out") } // all of a model, and more
			s.whileWaiting(claim, func() {
				must(t, cancel.Commit(t.Context()))
				must(t, turn.Rollback(t.Context()))
			})
			equal(t, 0, len(s.claim(2)), "jobs of a canceled run are handed out later") // admits the cancellation
			const canceled = `SELECT count(*) FROM job_results WHERE canceled AND attempts = 1`
			equal(t, test.claimed, s.count(canceled), "canceled results")
			equal(t, 0, s.rows("job_leases"), "leases of a canceled run are left")
			equal(t, uint64(test.claimed), s.d.Stats().Claimed["p1"], "claims were counted")
		})
	}
}

// TestCanceledJobsStay: the leases of a canceled run become results that show the same as package results shows of
// leases: their attempts and start, and the end of the run. Its completed jobs stay completed. To an attempt that lost
// its lease, a completed job is stale or lost, and another one canceled.
func TestCanceledJobsStay(t *testing.T) {
	s := newSite(t)
	run := s.order(6)
	first := s.claim(2)
	s.pass(2 * time.Minute)
	s.sweep()
	all := s.claim(4)
	s.settle(Released, all[2])
	s.settle(Completed, all[0])
	s.cancel(run)
	states := func(from string) string {
		return storetest.Value[string](t, s.pool, `
SELECT string_agg(concat_ws(' ', ordinal, attempts, started_at, finished_at), ', ' ORDER BY ordinal) FROM `+from)
	}
	before := states(`(
SELECT generate_series(ordinal, last_ordinal) AS ordinal, attempt AS attempts, l.started_at, r.finished_at
FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id) l`)
	equal(t, "stale canceled", s.settle(Completed, first...))
	s.sweep()
	equal(t, before, states(`job_results WHERE canceled AND NOT settled`))
	equal(t, 0, s.rows("job_leases", "job_queue"), "rows of a canceled run are left")
	equal(t, "stale canceled", s.settle(Completed, first...))
	equal(t, "lost canceled", s.renew(time.Minute, first...))
}
