package insights

const (
	// lockForRuns conflicts with lockTables.
	lockForRuns = `LOCK TABLE recommendations, alerts IN ROW EXCLUSIVE MODE`

	detachRecommendations = `UPDATE recommendations SET run_id = NULL WHERE account_id = $1 AND run_id = ANY ($2)`
	detachAlerts          = `UPDATE alerts SET run_id = NULL WHERE account_id = $1 AND run_id = ANY ($2)`

	eraseRecommendations = `
DELETE FROM recommendations WHERE account_id = $1 AND id = ANY (
  ARRAY(SELECT id FROM recommendations WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`

	eraseAlerts = `
DELETE FROM alerts WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM alerts WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`
)
