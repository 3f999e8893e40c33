package idempotency

// PurgeSQL is the statement that forgets records.
const PurgeSQL = purge
