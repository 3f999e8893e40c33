package auth

import "aiv/store"

const (
	setPlan = `
INSERT INTO plans (code, features, rate_limit_per_minute, jobs_per_month, max_unfinished_jobs) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (code) DO UPDATE SET features = excluded.features, rate_limit_per_minute = excluded.rate_limit_per_minute,
  jobs_per_month = excluded.jobs_per_month, max_unfinished_jobs = excluded.max_unfinished_jobs`

	listPlans = `SELECT code, features, rate_limit_per_minute, jobs_per_month, max_unfinished_jobs FROM plans ORDER BY code`

	createAccount = `INSERT INTO accounts (id, name, plan_code) VALUES ($1, $2, $3) RETURNING created_at`

	// accountColumns fit the fields of Account.
	accountColumns = `id, name, plan_code, created_at, own_quota, jobs_per_month, erased_at`

	listAccounts = `SELECT ` + accountColumns + ` FROM accounts ORDER BY created_at, id`
	oneAccount   = `SELECT ` + accountColumns + ` FROM accounts WHERE id = $1`

	setAccountPlan = `UPDATE accounts SET plan_code = $2 WHERE id = $1 RETURNING ` + accountColumns

	setAccountQuota = `UPDATE accounts SET own_quota = $2, jobs_per_month = $3 WHERE id = $1 RETURNING ` + accountColumns

	// lockAccount does not share its lock: on Citus, two transactions that share the lock of a row of a reference table
	// deadlock.
	lockAccount = `SELECT ` + accountColumns + ` FROM accounts WHERE id = $1 FOR NO KEY UPDATE`

	createCredential = `
INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes, rate_limit_per_minute, expires_at, rotated_from)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	// expiry is a credential's expiry. Infinity, which only SQL by hand can set, means none.
	expiry = `CASE WHEN isfinite(c.expires_at) THEN c.expires_at END`

	// credentialColumns fit the fields of Issued.
	credentialColumns = `
c.id, c.account_id, c.name, c.key_prefix, c.scopes, COALESCE(c.rate_limit_per_minute, p.rate_limit_per_minute, 60) AS rate_limit,
c.rate_limit_per_minute IS NOT NULL AS own_rate_limit, c.rotated_from, ` + expiry + ` AS expires_at, c.disabled_at, c.revoked_at, c.created_at,
CASE WHEN c.revoked_at IS NOT NULL THEN 'revoked' WHEN c.expires_at <= now() THEN 'expired'
  WHEN c.disabled_at IS NOT NULL THEN 'disabled' ELSE 'active' END AS state`

	fromCredentials = ` FROM credentials c JOIN accounts a ON a.id = c.account_id JOIN plans p ON p.code = a.plan_code `

	listCredentials = `SELECT ` + credentialColumns + fromCredentials + `WHERE $1::uuid IS NULL OR c.account_id = $1 ORDER BY c.created_at, c.id`
	oneCredential   = `SELECT ` + credentialColumns + fromCredentials + `WHERE c.id = $1`
	// The lock serializes operators' changes of a credential.
	lockedCredential = oneCredential + ` FOR NO KEY UPDATE OF c`

	// successorOf is the successor that is not revoked, if there is one.
	successorOf = `
SELECT id, revoked_at IS NOT NULL FROM credentials WHERE rotated_from = $1 ORDER BY revoked_at IS NOT NULL LIMIT 1`

	// updateCredential does not change what is given as NULL; $5 reports whether the expiry is given.
	updateCredential = `
UPDATE credentials SET name = COALESCE($2, name), scopes = COALESCE($3, scopes),
  rate_limit_per_minute = COALESCE($4, rate_limit_per_minute), expires_at = CASE WHEN $5 THEN $6 ELSE expires_at END
WHERE id = $1`

	// LEAST ignores NULL. Citus allows now() in it, and not in COALESCE.
	expireCredential  = `UPDATE credentials SET expires_at = LEAST(expires_at, now() + $2) WHERE id = $1`
	revokeCredential  = `UPDATE credentials SET revoked_at = LEAST(revoked_at, now()) WHERE id = $1`
	disableCredential = `UPDATE credentials SET disabled_at = LEAST(disabled_at, now()) WHERE id = $1`
	enableCredential  = `UPDATE credentials SET disabled_at = NULL WHERE id = $1`

	// nextRevision makes all processes read credentials again.
	nextRevision = `UPDATE identity_revision SET revision = ` + store.NextRevision

	// expiring returns the valid credentials that expire within $1 and have no valid successor that lasts as long.
	expiring = `
SELECT id, account_id, name, key_prefix, expires_at FROM credentials
WHERE expires_at > now() AND expires_at <= now() + $1::interval AND revoked_at IS NULL AND disabled_at IS NULL
  AND NOT EXISTS (SELECT FROM credentials s
    WHERE s.rotated_from = credentials.id AND s.revoked_at IS NULL AND s.disabled_at IS NULL AND (s.expires_at IS NULL OR s.expires_at >= credentials.expires_at) OFFSET 0)
ORDER BY expires_at LIMIT $2`
)

// RevisionSQL is an expression for the revision of the credentials, which increases when a credential, an account or a
// plan changes. The statements of other packages compare it with the revision of a CredentialCache.
const RevisionSQL = `(SELECT revision FROM identity_revision)`

// readCredentials reads the valid credentials of the keys in $1, and the revision.
//
// OFFSET 0 makes the planner look up the rows one by one. It might plan a join as a hash of all credentials, which is
// the best plan while there are few of them, and keep that plan when there are many.
const readCredentials = `
SELECT ` + RevisionSQL + `, c.key_hash, c.id, c.account_id, c.name, c.key_prefix, c.scopes,
  COALESCE(c.rate_limit_per_minute, p.rate_limit_per_minute, 60), p.code, p.features, ` + expiry + `,
  CASE WHEN a.own_quota THEN a.jobs_per_month ELSE p.jobs_per_month END, p.max_unfinished_jobs
FROM unnest($1::bytea[]) AS k (key_hash)
CROSS JOIN LATERAL (SELECT * FROM credentials WHERE key_hash = k.key_hash OFFSET 0) c
CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = c.account_id OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM plans WHERE code = a.plan_code OFFSET 0) p
WHERE c.revoked_at IS NULL AND c.disabled_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())`

const (
	// lockErased changes nothing, so that no trigger locks the revision of the credentials before the credentials are
	// locked.
	lockErased = `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE`

	beginErasing = `UPDATE accounts SET erased_at = now() WHERE id = $1 AND erased_at IS NULL`

	// revokeAccount changes no row that is revoked already, and locks rows in the order of the index on them.
	revokeAccount = `UPDATE credentials SET revoked_at = now() WHERE account_id = $1 AND revoked_at IS NULL`

	// sinceRevocation counts to the start of the transaction: what that revokes takes effect when it commits.
	sinceRevocation = `
SELECT COALESCE(now() - max(revoked_at), '1 day') FROM credentials WHERE account_id = $1`

	deleteCredentials = `DELETE FROM credentials WHERE account_id = $1`

	renameAccount = `UPDATE accounts SET name = 'erased' WHERE id = $1`
)

// RevokedWorkersSQL returns an SQL expression for the ids of revoked workers among ids, a parameter such as $1.
func RevokedWorkersSQL(ids string) string {
	return `ARRAY(SELECT id FROM workers WHERE id = ANY (` + ids + `::uuid[]) AND revoked_at IS NOT NULL)`
}

const (
	// workerColumns fit the fields of Worker.
	workerColumns = `id, name, providers, created_at, revoked_at, last_seen_at`

	createWorker = `INSERT INTO workers (id, name, providers, token_hash) VALUES ($1, $2, $3, $4) RETURNING created_at`

	// knownProviders returns which of the codes $1 are providers.
	knownProviders = `SELECT ARRAY(SELECT code FROM providers WHERE code = ANY ($1::text[]))`

	listWorkers = `SELECT ` + workerColumns + ` FROM workers ORDER BY created_at, id`

	// If the clock was ahead when a worker was seen, it counts as seen from its next request on. A standby may be behind.
	countSeen = `
SELECT count(*) FROM workers WHERE revoked_at IS NULL AND last_seen_at BETWEEN now() - interval '5 minutes' AND now() + interval '1 minute'
  AND ($1::text = '' OR providers IS NULL OR $1 = ANY (providers))`

	revokeWorker = `UPDATE workers SET revoked_at = LEAST(revoked_at, now()) WHERE id = $1 RETURNING ` + workerColumns

	// findWorkers finds workers by their tokens, and reports whether each was seen within the last minute.
	findWorkers = `
SELECT ` + workerColumns + `, token_hash, last_seen_at IS NOT NULL AND last_seen_at BETWEEN now() - interval '1 minute' AND now()
FROM workers WHERE token_hash = ANY ($1::bytea[]) AND revoked_at IS NULL`

	// seeWorkers leaves the rows alone that another request is writing.
	seeWorkers = `
UPDATE workers SET last_seen_at = now() WHERE id IN (SELECT id FROM workers WHERE id = ANY ($1::uuid[]) FOR NO KEY UPDATE SKIP LOCKED)`
)
