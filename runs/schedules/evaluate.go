package schedules

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/catalog"
	"aiv/insights"
	"aiv/insights/visibility"
	"aiv/store"
)

const (
	evaluationWorkers = 2   // accounts that a process evaluates at a time
	runsOfCall        = 100 // that one call of Evaluate evaluates, before it ends with a round
)

// A waiting is an occurrence whose run is final and not evaluated.
type waiting struct {
	Account, Schedule store.ID
	DueAt             time.Time
	Run               store.ID
}

// Evaluate derives alerts and recommendations from the runs that are final. Accounts take turns, one run of each, so that
// no account delays another by more than a run. The runs of a schedule are evaluated in the order of due times.
// It ends after runsOfCall, so that the next call soon tries again what waits for a recount.
func (s *Scheduler) Evaluate(ctx context.Context) error {
	var tried sync.Map // by run
	for n := 0; n < runsOfCall; {
		var found []waiting
		err := s.cfg.Outage.Retry(ctx, func() (err error) {
			// This finds one occurrence of each schedule. It leaves out accounts that failed a moment ago.
			found, err = store.Collect(ctx, s.cfg.Pool, pgx.RowToStructByPos[waiting], selectWaiting,
				s.cfg.Outage.Reachable(citusSelectWaiting), s.evaluations.waiting())
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		byAccount := make(map[store.ID][]waiting)
		for _, w := range found {
			byAccount[w.Account] = append(byAccount[w.Account], w)
		}
		evaluated := inParallel(evaluationWorkers, slices.Collect(maps.Values(byAccount)), func(of []waiting) bool {
			return s.evaluateOne(ctx, of, &tried)
		})
		// What is left waits for a recount, failed, or is being evaluated by another process.
		if evaluated == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		n += evaluated
	}
	return nil
}

// evaluateOne evaluates the first run of an account that was not tried and can be evaluated, and reports whether there
// was one. After a failure the account is tried again later. tried keeps a run that cannot be evaluated yet from being
// read again in the same call.
func (s *Scheduler) evaluateOne(ctx context.Context, of []waiting, tried *sync.Map) bool {
	for _, w := range of {
		if _, again := tried.LoadOrStore(w.Run, true); again {
			continue
		}
		done, err := s.evaluate(ctx, w)
		if err != nil {
			if ctx.Err() == nil {
				wait := s.evaluations.failed(w.Account)
				s.cfg.Log.Warn("a run could not be evaluated; will retry", "run", w.Run.Text("run"), "schedule", w.Schedule.Text("sched"),
					"retry_in", wait, "error", err)
			}
			return false
		}
		s.evaluations.succeeded(w.Account)
		if done {
			return true
		}
	}
	return false
}

// errChanged means that another evaluation of the account, or a deletion, came between the snapshot and the
// transaction.
var errChanged = errors.New("the account's schedules have changed")

// maxEvaluations bounds how often a run is evaluated when other transactions intervene.
const maxEvaluations = 5

// evaluate evaluates one run. It reads everything in one snapshot, without locks, and writes what follows in a
// transaction that does nothing if the account's version has changed since. It reports false if the run is not to be
// evaluated, or not yet.
func (s *Scheduler) evaluate(ctx context.Context, w waiting) (bool, error) {
	for try := 1; ; try++ {
		v, err := s.read(ctx, w)
		if err != nil || v == nil {
			return false, err
		}
		changes, err := s.apply(ctx, w, v)
		if errors.Is(err, errChanged) && try < maxEvaluations {
			continue
		}
		if err == nil {
			s.countChanges(changes)
		}
		return err == nil, err
	}
}

// A view is what a snapshot shows of a run to evaluate.
type view struct {
	insights.Evaluation
	version  int64 // of schedule_accounts; every evaluation and deletion raises it
	canceled bool  // the run is only marked as evaluated
}

// read reads what is known of a run. It returns nil if the run is not to be evaluated, or not yet.
func (s *Scheduler) read(ctx context.Context, w waiting) (v *view, err error) {
	err = store.Snapshot(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		v, err = readView(ctx, tx, w)
		return err
	})
	return v, err
}

// readView reads what an evaluation needs, or returns nil if the run is not to be evaluated, or not yet. A disturbed
// run has more than a fifth of its jobs failed: nothing is compared with it.
func readView(ctx context.Context, tx pgx.Tx, w waiting) (*view, error) {
	v := &view{Evaluation: insights.Evaluation{Account: w.Account, Schedule: w.Schedule, Run: w.Run}}
	var minChange int64
	var questions []string
	err := tx.QueryRow(ctx, readEvaluation, w.Account, w.Schedule, w.DueAt, w.Run).Scan(&v.version, &v.Name, &minChange, &v.Status, &v.Country,
		&v.Models, &questions, &v.Total, &v.Failed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.MinChange = visibility.Decimal(minChange)
	if v.canceled = v.Status == "canceled"; v.canceled {
		return v, nil
	}
	if v.Disturbed = v.Status == "failed" || 5*v.Failed > v.Total; v.Disturbed {
		return v, nil
	}
	// The baseline is the latest four earlier runs of the schedule that are not disturbed, taken together.
	baseline, err := store.Collect(ctx, tx, pgx.RowTo[store.ID], selectBaseline, w.Account, w.Schedule, w.DueAt)
	if err != nil {
		return nil, err
	}
	if v.Baseline = len(baseline); v.Baseline > 0 {
		v.Comparisons, err = visibility.CompareRuns(ctx, tx, w.Account, w.Run, baseline, v.Models)
		if err != nil {
			return nil, err
		}
		if all := v.Comparisons.All; !all.Current.Answers.Complete() || !all.Baseline.Answers.Complete() {
			return nil, nil // answers are being recounted
		}
	}
	// Gaps do not need a baseline.
	if v.Gaps, err = visibility.ReadGaps(ctx, tx, w.Account, w.Run); err != nil {
		return nil, err
	}
	if !v.Gaps.Answers.Complete() {
		return nil, nil
	}
	texts, err := catalog.QuestionTexts(ctx, tx, w.Account, questions)
	if err != nil {
		return nil, err
	}
	v.Texts = make(map[string]string, len(texts))
	for i, text := range texts {
		v.Texts[questions[i]] = text
	}
	return v, nil
}

// apply writes what follows from a view. It takes locks in the order in which a purge takes them; the lock of the
// account's queue of events comes last.
func (s *Scheduler) apply(ctx context.Context, w waiting, v *view) (changes *insights.Changes, err error) {
	changes = &insights.Changes{}
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT `+store.BoundIdle); err != nil {
			return err
		}
		// The locks are taken in this order: on what is derived for the account, on its schedules, and on the run.
		if err := insights.LockDerived(ctx, tx, w.Account); err != nil {
			return err
		}
		var version int64
		err := tx.QueryRow(ctx, `SELECT version FROM schedule_accounts WHERE account_id = $1 FOR NO KEY UPDATE`, w.Account).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && version != v.version {
			return errChanged
		}
		if err != nil {
			return err
		}
		// The run may have been deleted since the snapshot.
		tag, err := tx.Exec(ctx, `SELECT FROM measurement_runs WHERE account_id = $1 AND id = $2 FOR KEY SHARE`, w.Account, w.Run)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		now, err := store.Now(ctx, tx) // after the waits for locks
		if err != nil {
			return err
		}
		// This changes no row if the occurrence was evaluated or deleted since the snapshot.
		tag, err = tx.Exec(ctx, setEvaluated, w.Account, w.Schedule, w.DueAt, w.Run, now)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errChanged
		}
		// A canceled run derives nothing.
		if _, err := tx.Exec(ctx, raiseVersion, w.Account); err != nil || v.canceled {
			return err
		}
		d := insights.Deriver{Events: s.cfg.Derived, Record: s.cfg.Record, NewID: s.cfg.NewID}
		changes, err = d.Apply(ctx, tx, now, &v.Evaluation)
		return err
	})
	return changes, err
}

const (
	// selectWaiting returns the earliest occurrence of each schedule that is not evaluated, if its run is final. It
	// leaves out the accounts in $1.
	selectWaiting = `
SELECT w.account_id, w.schedule_id, w.due_at, w.run_id FROM (
  SELECT DISTINCT ON (account_id, schedule_id) account_id, schedule_id, due_at, run_id FROM schedule_occurrences
  WHERE run_id IS NOT NULL AND evaluated_at IS NULL AND account_id <> ALL ($1::uuid[]) ORDER BY account_id, schedule_id, due_at) w
JOIN measurement_runs r ON r.account_id = w.account_id AND r.id = w.run_id
WHERE r.finished_at IS NOT NULL ORDER BY r.finished_at`

	// readEvaluation returns no row if the occurrence has been evaluated or deleted, or its run is not final.
	readEvaluation = `
SELECT a.version, s.name, s.min_change, r.status, r.country, r.model_ids, r.question_ids, r.total_jobs, r.jobs_failed
FROM schedule_occurrences o
JOIN schedules s ON s.account_id = o.account_id AND s.id = o.schedule_id
JOIN schedule_accounts a ON a.account_id = o.account_id
JOIN measurement_runs r ON r.account_id = o.account_id AND r.id = o.run_id
WHERE o.account_id = $1 AND o.schedule_id = $2 AND o.due_at = $3 AND o.run_id = $4 AND o.evaluated_at IS NULL AND r.finished_at IS NOT NULL`

	// selectBaseline returns the runs of the latest earlier occurrences that can be compared with.
	selectBaseline = `
SELECT r.id FROM schedule_occurrences o JOIN measurement_runs r ON r.account_id = o.account_id AND r.id = o.run_id
WHERE o.account_id = $1 AND o.schedule_id = $2 AND o.due_at < $3 AND o.status = 'created' AND r.status IN ('completed', 'partial')
  AND 5 * r.jobs_failed::bigint <= r.total_jobs
ORDER BY o.due_at DESC LIMIT 4`

	// setEvaluated gets the time as a parameter, because Citus rejects volatile functions in an UPDATE.
	setEvaluated = `
UPDATE schedule_occurrences SET evaluated_at = $5
WHERE account_id = $1 AND schedule_id = $2 AND due_at = $3 AND run_id = $4 AND evaluated_at IS NULL`
)
