package schedules

import (
	"context"

	"aiv/store"
)

// purge deletes occurrences whose last due time is old, in small steps. It keeps the latest one of a schedule, its
// latest one with a run, and those whose run is not evaluated.
func (s *Scheduler) purge(ctx context.Context) error {
	before, err := store.PurgeBefore(ctx, s.cfg.Pool, occurrencesKept)
	if err == nil {
		_, err = store.ExecInSteps(ctx, s.cfg.Pool, purgeStep, purgeOccurrences, before)
	}
	return err
}

// purgeStep is how many rows one transaction deletes.
const purgeStep = 1000

const purgeOccurrences = `
DELETE FROM schedule_occurrences d USING (
  SELECT o.account_id, o.schedule_id, o.due_at FROM schedule_occurrences o
  JOIN schedules s ON s.account_id = o.account_id AND s.id = o.schedule_id
  WHERE o.last_due_at < $1 AND o.last_due_at < s.last_due_at AND (o.run_id IS NULL OR o.evaluated_at IS NOT NULL)
    AND (o.status = 'skipped' OR EXISTS (
      SELECT FROM schedule_occurrences l
      WHERE l.account_id = o.account_id AND l.schedule_id = o.schedule_id AND l.status = 'created' AND l.due_at > o.due_at))
  ORDER BY o.last_due_at LIMIT $2) old
WHERE d.account_id = old.account_id AND d.schedule_id = old.schedule_id AND d.due_at = old.due_at`
