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

	lockAccount = `SELECT ` + accountColumns + ` FROM accounts WHERE id = $1 FOR SHARE`

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

	nextRevision = `UPDATE identity_revision SET revision = ` + store.NextRevision

	expiring = `
SELECT id, account_id, name, key_prefix, expires_at FROM credentials
WHERE expires_at > now() AND expires_at <= now() + $1::interval AND revoked_at IS NULL AND disabled_at IS NULL
  AND NOT EXISTS (SELECT FROM credentials s
    WHERE s.rotated_from = credentials.id AND s.revoked_at IS NULL AND s.disabled_at IS NULL AND (s.expires_at IS NULL OR s.expires_at >= credentials.expires_at) OFFSET 0)
ORDER BY expires_at LIMIT $2`
)
