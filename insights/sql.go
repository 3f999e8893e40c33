package insights

import "aiv/store/jsonl"

const (
	// selectRecommendations fits the fields of Recommendation, selectAlerts those of Alert.
	selectRecommendations = `
SELECT id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at
FROM recommendations`

	selectAlerts = `
SELECT id, type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id, country,
  run_id, detected_at, resolved_at
FROM alerts`

	// lockTables makes imports wait for one another: two at once would each miss what the other adds. It keeps no reader
	// waiting.
	lockTables = `LOCK TABLE recommendations, alerts IN SHARE ROW EXCLUSIVE MODE`

	// Each import statement writes the rows of a temporary table of the same columns, and only those that differ.
	upsertRecommendations = `
INSERT INTO recommendations AS r (id, account_id, type, category, title, summary, priority, status, model_ids, question_ids, run_id,
  created_at, updated_at)
SELECT id, account_id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at
FROM incoming_recommendations ORDER BY account_id, id
ON CONFLICT (account_id, id) DO UPDATE SET
  (type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at)
  = (excluded.type, excluded.category, excluded.title, excluded.summary, excluded.priority, excluded.status, excluded.model_ids,
     excluded.question_ids, excluded.run_id, excluded.created_at, excluded.updated_at)
WHERE (r.type, r.category, r.title, r.summary, r.priority, r.status, r.model_ids, r.question_ids, r.run_id, r.created_at, r.updated_at)
  IS DISTINCT FROM (excluded.type, excluded.category, excluded.title, excluded.summary, excluded.priority, excluded.status,
     excluded.model_ids, excluded.question_ids, excluded.run_id, excluded.created_at, excluded.updated_at)`

	upsertAlerts = `
INSERT INTO alerts AS a (id, account_id, type, severity, status, title, message, metric, direction, current_value, baseline_value,
  model_id, question_id, country, run_id, detected_at, resolved_at)
SELECT id, account_id, type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id,
  country, run_id, detected_at, resolved_at
FROM incoming_alerts ORDER BY account_id, id
ON CONFLICT (account_id, id) DO UPDATE SET
  (type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id, country, run_id,
     detected_at, resolved_at)
  = (excluded.type, excluded.severity, excluded.status, excluded.title, excluded.message, excluded.metric, excluded.direction,
     excluded.current_value, excluded.baseline_value, excluded.model_id, excluded.question_id, excluded.country, excluded.run_id,
     excluded.detected_at, excluded.resolved_at)
WHERE (a.type, a.severity, a.status, a.title, a.message, a.metric, a.direction, a.current_value, a.baseline_value, a.model_id,
     a.question_id, a.country, a.run_id, a.detected_at, a.resolved_at)
  IS DISTINCT FROM (excluded.type, excluded.severity, excluded.status, excluded.title, excluded.message, excluded.metric,
     excluded.direction, excluded.current_value, excluded.baseline_value, excluded.model_id, excluded.question_id, excluded.country,
     excluded.run_id, excluded.detected_at, excluded.resolved_at)`
)

// refusals are queries for the lines of a kind that can't be taken.
func refusals(table string) []jsonl.Check {
	lines := `SELECT i.line FROM incoming_` + table + ` i WHERE `
	first := ` ORDER BY i.line LIMIT 20`
	return []jsonl.Check{
		{
			Query:  lines + `NOT EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id)` + first,
			Reason: "there is no such account",
		}, {
			Query: lines + `i.run_id IS NOT NULL
AND NOT EXISTS (SELECT FROM measurement_runs r WHERE r.account_id = i.account_id AND r.id = i.run_id)` + first,
			Reason: "the account has no such run",
		}, {
			// An id is one record's in all of the API, whatever the key of the table allows.
			Query:  lines + `EXISTS (SELECT FROM ` + table + ` t WHERE t.id = i.id AND t.account_id <> i.account_id)` + first,
			Reason: "its id is there already and belongs to another account",
		},
	}
}
