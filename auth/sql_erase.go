package auth

const (
	// lockErased changes nothing, so that no trigger locks the revision of the credentials before the credentials are
	// locked.
	lockErased = `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE`

	beginErasing = `UPDATE accounts SET erased_at = now() WHERE id = $1 AND erased_at IS NULL`

	// revokeAccount changes no row that is revoked already, and locks rows in the order of the index on them.
	revokeAccount = `UPDATE credentials SET revoked_at = now() WHERE account_id = $1 AND revoked_at IS NULL`

	sinceRevocation = `
SELECT COALESCE(clock_timestamp() - max(revoked_at), '1 day') FROM credentials WHERE account_id = $1`

	deleteCredentials = `DELETE FROM credentials WHERE account_id = $1`

	renameAccount = `UPDATE accounts SET name = 'erased' WHERE id = $1`
)
