package auth

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
