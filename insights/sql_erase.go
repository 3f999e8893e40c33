package insights

const (
	// lockForRuns conflicts with lockTables.
	lockForRuns = `LOCK TABLE recommendations, alerts IN ROW EXCLUSIVE MODE`

	detachRecommendations = `UPDATE recommendations i SET run_id = NULL FROM unnest($2::uuid[]) AS k (id) WHERE i.account_id = $1 AND i.run_id = k.id`
	detachAlerts          = `UPDATE alerts i SET run_id = NULL FROM unnest($2::uuid[]) AS k (id) WHERE i.account_id = $1 AND i.run_id = k.id`

	eraseRecommendations = `
DELETE FROM recommendations WHERE account_id = $1 AND id = ANY (
  ARRAY(SELECT id FROM recommendations WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`

	eraseAlerts = `
DELETE FROM alerts WHERE account_id = $1 AND id = ANY (ARRAY(SELECT id FROM alerts WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`
)
