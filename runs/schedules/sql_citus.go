package schedules

import "aiv/store"

// citusSelectDue is selectDue on Citus. It does not ask servers that are unreachable.
var citusSelectDue = `
SELECT account_id, id FROM (
  SELECT DISTINCT ON (account_id) account_id, id, next_at FROM schedules
  WHERE next_at <= now() AND id <> ALL ($1::uuid[]) AND account_id <> ALL ($3::uuid[]) AND ` + store.AmongAccounts("account_id", "$4") + `
  ORDER BY account_id, next_at, id) s
ORDER BY next_at, id LIMIT $2`

// citusSelectWaiting is selectWaiting on Citus. It does not ask servers that are unreachable.
var citusSelectWaiting = `
SELECT w.account_id, w.schedule_id, w.due_at, w.run_id FROM (
  SELECT DISTINCT ON (account_id, schedule_id) account_id, schedule_id, due_at, run_id FROM schedule_occurrences
  WHERE run_id IS NOT NULL AND evaluated_at IS NULL AND account_id <> ALL ($1::uuid[])
    AND ` + store.AmongAccounts("account_id", "$2") + ` ORDER BY account_id, schedule_id, due_at) w
JOIN measurement_runs r ON r.account_id = w.account_id AND r.id = w.run_id
WHERE r.finished_at IS NOT NULL AND ` + store.AmongAccounts("r.account_id", "$2") + ` ORDER BY r.finished_at`
