package insights

import (
	"aiv/insights/events"
	"aiv/store/jsonl"
)

// recommendationColumns are the columns of Recommendation.
const recommendationColumns = `id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at,
  updated_at, schedule_id`

const selectRecommendations = `SELECT ` + recommendationColumns + ` FROM recommendations`

// selectAlerts returns the columns of Alert.
const selectAlerts = `
SELECT id, type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id, country,
  run_id, detected_at, resolved_at, brand_id, schedule_id
FROM alerts`

// lockTables makes imports run one at a time: concurrent imports would not see the rows that the others add. It does
// not block readers.
const lockTables = `LOCK TABLE recommendations, alerts IN SHARE ROW EXCLUSIVE MODE`

// readActive reads the recommendations and alerts with the ids of candidates before the import: whether they are
// suggested or open, and what an import does not change.
const readActive = `
SELECT r.id, '` + events.RecommendationSuggested + `', r.status = 'suggested', NULL::uuid, r.schedule_id
FROM recommendations r JOIN unnest($1::uuid[], $2::uuid[]) AS c (account_id, id) ON r.account_id = c.account_id AND r.id = c.id
UNION ALL
SELECT a.id, '` + events.AlertOpened + `', a.status = 'open', a.brand_id, a.schedule_id
FROM alerts a JOIN unnest($1::uuid[], $2::uuid[]) AS c (account_id, id) ON a.account_id = c.account_id AND a.id = c.id`

// Each upsert writes the rows of the temporary table incoming_NAME that differ, and returns a row for each. A derived
// row keeps its schedule, its brand and its fingerprint.

const upsertRecommendations = `
WITH written AS (
INSERT INTO recommendations AS r (id, account_id, type, category, title, summary, priority, status, model_ids, question_ids, run_id,
  created_at, updated_at, status_imported)
SELECT id, account_id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at, true
FROM incoming_recommendations ORDER BY account_id, id
ON CONFLICT (account_id, id) DO UPDATE SET
  (type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at, updated_at, status_imported)
  = (excluded.type, excluded.category, excluded.title, excluded.summary, excluded.priority, excluded.status, excluded.model_ids,
     excluded.question_ids, excluded.run_id, excluded.created_at, excluded.updated_at, true)
WHERE (r.type, r.category, r.title, r.summary, r.priority, r.status, r.model_ids, r.question_ids, r.run_id, r.created_at, r.updated_at,
    r.status_imported) IS DISTINCT FROM
  (excluded.type, excluded.category, excluded.title, excluded.summary, excluded.priority, excluded.status, excluded.model_ids,
    excluded.question_ids, excluded.run_id, excluded.created_at, excluded.updated_at, true)
RETURNING 1)
SELECT FROM written`

// The rows are ordered so that an alert is resolved before another one of its schedule and fingerprint is opened.
const upsertAlerts = `
WITH written AS (
INSERT INTO alerts AS a (id, account_id, type, severity, status, title, message, metric, direction, current_value, baseline_value,
  model_id, question_id, country, run_id, detected_at, resolved_at)
SELECT id, account_id, type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id,
  country, run_id, detected_at, resolved_at
FROM incoming_alerts ORDER BY status <> 'resolved', account_id, id
ON CONFLICT (account_id, id) DO UPDATE SET
  (type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, question_id, country, run_id,
     detected_at, resolved_at)
  = (excluded.type, excluded.severity, excluded.status, excluded.title, excluded.message, excluded.metric, excluded.direction,
     excluded.current_value, excluded.baseline_value, excluded.model_id, excluded.question_id, excluded.country, excluded.run_id,
     excluded.detected_at, excluded.resolved_at)
WHERE (a.type, a.severity, a.status, a.title, a.message, a.metric, a.direction, a.current_value, a.baseline_value, a.model_id, a.question_id,
    a.country, a.run_id, a.detected_at, a.resolved_at) IS DISTINCT FROM
  (excluded.type, excluded.severity, excluded.status, excluded.title, excluded.message, excluded.metric, excluded.direction,
    excluded.current_value, excluded.baseline_value, excluded.model_id, excluded.question_id, excluded.country, excluded.run_id,
    excluded.detected_at, excluded.resolved_at)
RETURNING 1)
SELECT FROM written`

// importChecks returns queries for the lines of a table that cannot be imported.
func importChecks(table string) []jsonl.Check {
	// All checks select the lines at fault from the temporary table.
	lines := `SELECT i.line FROM incoming_` + table + ` i WHERE `
	incoming := `WITH incoming_` + table + ` AS MATERIALIZED (SELECT line, account_id, id, run_id FROM incoming_` + table + `)`
	return []jsonl.Check{
		{
			Query:  lines + `NOT EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id)`,
			Reason: "unknown account",
		}, {
			Query:  lines + `EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id AND a.erased_at IS NOT NULL)`,
			Reason: "the account is erased",
		}, {
			Query: lines + `i.run_id IS NOT NULL
AND NOT EXISTS (SELECT FROM measurement_runs r WHERE r.account_id = i.account_id AND r.id = i.run_id)`,
			Reason: "unknown run of this account",
			// The names hide the tables of the cluster, so that Query reads local copies of the rows that it needs.
			CitusTables: incoming + `, measurement_runs AS MATERIALIZED (
  SELECT r.account_id, r.id FROM measurement_runs r JOIN incoming_` + table + ` i ON r.account_id = i.account_id AND r.id = i.run_id)`,
		}, {
			// Ids are unique across accounts, although the primary key includes the account.
			Query:  lines + `EXISTS (SELECT FROM ` + table + ` t WHERE t.id = i.id AND t.account_id <> i.account_id)`,
			Reason: "id belongs to another account",
			CitusTables: incoming + `, ` + table + ` AS MATERIALIZED (
  SELECT t.account_id, t.id FROM ` + table + ` t JOIN incoming_` + table + ` i ON t.id = i.id)`,
		},
	}
}

// openTwice finds the lines after which two alerts with the same fingerprint would be open.
var openTwice = jsonl.Check{
	Query: `
SELECT i.line FROM incoming_alerts i WHERE i.status <> 'resolved' AND EXISTS (
  SELECT FROM alerts a
  JOIN alerts b ON b.account_id = a.account_id AND b.schedule_id = a.schedule_id AND b.fingerprint = a.fingerprint AND b.id <> a.id
  LEFT JOIN incoming_alerts j ON j.account_id = b.account_id AND j.id = b.id
  WHERE a.account_id = i.account_id AND a.id = i.id AND COALESCE(j.status, b.status) <> 'resolved')`,
	Reason: "another alert of its schedule is open",
	CitusTables: `WITH incoming_alerts AS MATERIALIZED (SELECT line, account_id, id, status FROM incoming_alerts),
alerts AS MATERIALIZED (
  SELECT t.account_id, t.id, t.schedule_id, t.fingerprint, t.status
  FROM alerts t JOIN (SELECT DISTINCT account_id FROM incoming_alerts) i ON t.account_id = i.account_id WHERE t.schedule_id IS NOT NULL)`,
}
