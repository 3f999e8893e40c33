package schedules

import "aiv/store"

// Invariants returns the invariants of the tables of this package, and of what is derived for schedules. CHECK
// constraints ensure that next_at is NULL exactly while a schedule is paused, and that a skipped occurrence has no run.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "occurrence_run",
		Doc:  "The run of an occurrence belongs to its account, and to no other occurrence.",
		Query: `
SELECT format('run %s of account %s has the occurrence of schedule %s at %s, and no row', o.run_id, o.account_id, o.schedule_id, o.due_at)
FROM schedule_occurrences o LEFT JOIN measurement_runs r ON r.account_id = o.account_id AND r.id = o.run_id
WHERE o.run_id IS NOT NULL AND r.id IS NULL
UNION ALL
SELECT format('run %s of account %s has %s occurrences', run_id, account_id, count(*)) FROM schedule_occurrences
WHERE run_id IS NOT NULL GROUP BY account_id, run_id HAVING count(*) > 1`,
	}, {
		Name: "occurrence_order",
		Doc:  "The due times of a schedule's occurrences do not overlap, are up to its last_due_at, and lie before its next_at.",
		Query: `
SELECT format('schedule %s of account %s: %s', s.id, s.account_id, o.due_at)
FROM schedules s JOIN (
  SELECT account_id, schedule_id, due_at, last_due_at,
    lead(due_at) OVER (PARTITION BY account_id, schedule_id ORDER BY due_at) AS following FROM schedule_occurrences
) o ON o.account_id = s.account_id AND o.schedule_id = s.id
WHERE o.following <= o.last_due_at OR o.last_due_at >= s.next_at OR s.last_due_at IS NULL OR o.last_due_at > s.last_due_at`,
	}, {
		Name: "schedule_last_run",
		Doc:  "The last_run_id of a schedule is the run of its latest created occurrence.",
		Query: `
SELECT format('schedule %s of account %s', s.id, s.account_id)
FROM schedules s LEFT JOIN (
  SELECT DISTINCT ON (account_id, schedule_id) account_id, schedule_id, run_id FROM schedule_occurrences
  WHERE status = 'created' ORDER BY account_id, schedule_id, due_at DESC
) o ON o.account_id = s.account_id AND o.schedule_id = s.id
WHERE s.last_run_id IS DISTINCT FROM o.run_id`,
	}, {
		Name: "schedule_bound",
		Doc:  "An account has at most 100 schedules.",
		Query: `
SELECT format('account %s has %s schedules', account_id, count(*)) FROM schedules GROUP BY account_id HAVING count(*) > 100`,
	}, {
		Name: "derived_schedule",
		Doc:  "The schedule of an alert or a recommendation exists, unless its account is erased.",
		Query: `
SELECT format('alert %s of account %s: schedule %s', a.id, a.account_id, a.schedule_id)
FROM alerts a JOIN accounts o ON o.id = a.account_id AND o.erased_at IS NULL
LEFT JOIN schedules s ON s.account_id = a.account_id AND s.id = a.schedule_id WHERE a.schedule_id IS NOT NULL AND s.id IS NULL
UNION ALL
SELECT format('recommendation %s of account %s: schedule %s', r.id, r.account_id, r.schedule_id)
FROM recommendations r JOIN accounts o ON o.id = r.account_id AND o.erased_at IS NULL
LEFT JOIN schedules s ON s.account_id = r.account_id AND s.id = r.schedule_id WHERE r.schedule_id IS NOT NULL AND s.id IS NULL`,
	}, {
		Name: "derived_fingerprint",
		Doc:  "No two open alerts, and no two recommendations, of a schedule have the same fingerprint.",
		Query: `
SELECT format('schedule %s of account %s: alerts about %s', schedule_id, account_id, fingerprint) FROM alerts
WHERE schedule_id IS NOT NULL AND status <> 'resolved' GROUP BY account_id, schedule_id, fingerprint HAVING count(*) > 1
UNION ALL
SELECT format('schedule %s of account %s: recommendations about %s', schedule_id, account_id, fingerprint) FROM recommendations
WHERE schedule_id IS NOT NULL GROUP BY account_id, schedule_id, fingerprint HAVING count(*) > 1`,
	}}
}
