package insights

const (
	// touchRecommendations and touchAlerts change no row. They lock their table as changes of its rows do; on Citus, the account's
	// part of it.
	touchRecommendations = `UPDATE recommendations SET status = status WHERE account_id = $1 AND false`
	touchAlerts          = `UPDATE alerts SET status = status WHERE account_id = $1 AND false`

	detachRecommendations = `
UPDATE recommendations SET schedule_id = NULL,
  status = CASE WHEN status IN ('suggested', 'accepted', 'in_progress') THEN 'done' ELSE status END,
  updated_at = CASE WHEN status IN ('suggested', 'accepted', 'in_progress') THEN GREATEST(updated_at, statement_timestamp()) ELSE updated_at END
WHERE account_id = $1 AND schedule_id = $2`

	detachAlerts = `
UPDATE alerts SET schedule_id = NULL, status = 'resolved', resolved_at = COALESCE(resolved_at, GREATEST(detected_at, statement_timestamp()))
WHERE account_id = $1 AND schedule_id = $2`
)
