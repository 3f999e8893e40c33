package idempotency

// The statements of Purge.
const (
	PurgeEndSQL = purgeEnd
	PurgeSQL    = purge
)
