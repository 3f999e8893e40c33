package webhooks

const (
	listAllEndpoints = `
SELECT account_id, ` + endpointColumns + `, failing_since FROM webhook_endpoints
WHERE deleted_at IS NULL AND ($1::uuid IS NULL OR account_id = $1) ORDER BY account_id, created_at, id`

	// accountOfEndpoint finds the account of an endpoint; ids are unique among all accounts.
	accountOfEndpoint = `SELECT account_id FROM webhook_endpoints WHERE id = $1`

	// setDisabledReason changes an endpoint that is locked.
	setDisabledReason = `
UPDATE webhook_endpoints SET disabled_reason = $3, failing_since = NULL, updated_at = now()
WHERE account_id = $1 AND id = $2
RETURNING account_id, ` + endpointColumns + `, failing_since`
)
