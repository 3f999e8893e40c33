package insights

const (
	// touchRecommendations and touchAlerts change no row. They lock their table as changes of its rows do; on Citus,
	// the account's part of it.
	touchRecommendations = `UPDATE recommendations SET status = status WHERE account_id = $1 AND id = '00000000-0000-0000-0000-000000000000'`
	touchAlerts          = `UPDATE alerts SET status = status WHERE account_id = $1 AND id = '00000000-0000-0000-0000-000000000000'`

	// selectOpenAlerts includes acknowledged alerts: what they report is not opened again until they are resolved.
	selectOpenAlerts = `
SELECT fingerprint, id, type FROM alerts WHERE account_id = $1 AND schedule_id = $2 AND status <> 'resolved'`

	// A clock that went back must not resolve an alert before it was detected.
	resolveAlert = `
UPDATE alerts SET status = 'resolved', resolved_at = GREATEST($3, detected_at) WHERE account_id = $1 AND id = $2 AND status <> 'resolved'`

	insertAlert = `
INSERT INTO alerts (account_id, id, type, severity, status, title, message, metric, direction, current_value, baseline_value, model_id, country,
  run_id, detected_at, brand_id, schedule_id, fingerprint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`

	// selectDerived returns the recommendations of a schedule that are open or have one of the fingerprints $3. A schedule
	// has any number of others.
	selectDerived = ofSchedule + ` AND status IN ('suggested', 'accepted', 'in_progress')
UNION ALL` + ofSchedule + ` AND status IN ('done', 'dismissed') AND fingerprint = ANY ($3)`

	ofSchedule = `
SELECT ` + recommendationColumns + `, fingerprint, status_imported FROM recommendations WHERE account_id = $1 AND schedule_id = $2`

	// countOpenDerived counts the open derived recommendations of all schedules of the account.
	countOpenDerived = `
SELECT count(*) FROM recommendations
WHERE account_id = $1 AND schedule_id IS NOT NULL AND status IN ('suggested', 'accepted', 'in_progress')`

	insertRecommendation = `
INSERT INTO recommendations (account_id, id, type, category, title, summary, priority, status, model_ids, question_ids, run_id, created_at,
  updated_at, schedule_id, fingerprint, status_imported)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14, false)`

	// updateRecommendation never sets updated_at before created_at, which an import may have set to a later time.
	updateRecommendation = `
UPDATE recommendations SET status = $3, status_imported = $4, title = $5, summary = $6, priority = $7, model_ids = $8, question_ids = $9,
  run_id = $10, updated_at = GREATEST($11, created_at)
WHERE account_id = $1 AND id = $2`

	// endRecommendation marks the status as derived, so that the recommendation may be suggested again.
	endRecommendation = `
UPDATE recommendations SET status = 'done', status_imported = false, updated_at = GREATEST($3, created_at) WHERE account_id = $1 AND id = $2`

	// detachRecommendations keeps the status of recommendations that are done or dismissed.
	detachRecommendations = `
UPDATE recommendations SET schedule_id = NULL,
  status = CASE WHEN status IN ('suggested', 'accepted', 'in_progress') THEN 'done' ELSE status END,
  updated_at = CASE WHEN status IN ('suggested', 'accepted', 'in_progress') THEN GREATEST(updated_at, $3::timestamptz) ELSE updated_at END
WHERE account_id = $1 AND schedule_id = $2`

	// detachAlerts resolves alerts that are not resolved yet.
	detachAlerts = `
UPDATE alerts SET schedule_id = NULL, status = 'resolved', resolved_at = COALESCE(resolved_at, GREATEST(detected_at, $3::timestamptz))
WHERE account_id = $1 AND schedule_id = $2`
)
