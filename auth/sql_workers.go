package auth

// RevokedWorkersSQL returns an SQL expression for the ids of revoked workers among ids, a parameter such as $1.
func RevokedWorkersSQL(ids string) string {
	return `ARRAY(SELECT id FROM workers WHERE id = ANY (` + ids + `::uuid[]) AND revoked_at IS NOT NULL)`
}

const (
	workerColumns = `id, name, providers, created_at, revoked_at, last_seen_at`

	createWorker = `INSERT INTO workers (id, name, providers, token_hash) VALUES ($1, $2, $3, $4) RETURNING created_at`

	knownProviders = `SELECT ARRAY(SELECT code FROM providers WHERE code = ANY ($1::text[]))`

	listWorkers = `SELECT ` + workerColumns + ` FROM workers ORDER BY created_at, id`

	// If the clock was ahead when a worker was seen, it counts as seen from its next request on. A standby may be behind.
	countSeen = `
SELECT count(*) FROM workers WHERE revoked_at IS NULL AND last_seen_at BETWEEN now() - interval '5 minutes' AND now() + interval '1 minute'
  AND ($1::text = '' OR providers IS NULL OR $1 = ANY (providers))`

	revokeWorker = `UPDATE workers SET revoked_at = LEAST(revoked_at, now()) WHERE id = $1 RETURNING ` + workerColumns

	findWorkers = `
SELECT ` + workerColumns + `, token_hash, last_seen_at IS NOT NULL AND last_seen_at BETWEEN now() - interval '1 minute' AND now()
FROM workers WHERE token_hash = ANY ($1::bytea[]) AND revoked_at IS NULL`

	// seeWorkers leaves the rows alone that another request is writing.
	seeWorkers = `
UPDATE workers SET last_seen_at = now() WHERE id IN (SELECT id FROM workers WHERE id = ANY ($1::uuid[]) FOR NO KEY UPDATE SKIP LOCKED)`
)
