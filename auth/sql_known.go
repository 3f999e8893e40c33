package auth

// Known is a common table expression, the credentials that are valid now among the keys asked for. Package limits counts
// their requests in the same statement, so that what holds for a request (a revocation, a plan, a limit) is what the
// database says at the moment it is counted.
//
// The rows are looked up one by one (OFFSET 0 is what keeps the planner to that): a join may be planned as a hash of all
// credentials, which is the best plan while there are few, and stays when there are many.
//
// $1 is an array of key hashes, each once, and $2 how many requests came with each. The expression has key_no (the key's
// place in $1, from 1), n, id, account_id, rate_limit, and the columns of Version.
const Known = `
known AS (
  SELECT k.key_no, k.n, c.id, c.account_id, COALESCE(c.rate_limit_per_minute, p.rate_limit_per_minute, 60) AS rate_limit,
    c.xmin AS credential_version, a.xmin AS account_version, p.xmin AS plan_version
  FROM unnest($1::bytea[], $2::integer[]) WITH ORDINALITY AS k (key_hash, n, key_no)
  CROSS JOIN LATERAL (SELECT *, xmin FROM credentials WHERE key_hash = k.key_hash OFFSET 0) c
  CROSS JOIN LATERAL (SELECT *, xmin FROM accounts WHERE id = c.account_id OFFSET 0) a
  CROSS JOIN LATERAL (SELECT *, xmin FROM plans WHERE code = a.plan_code OFFSET 0) p
  WHERE c.revoked_at IS NULL AND c.disabled_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp())
)`

// describe reads what a request may want to know of its credential, and the versions of the rows that say so.
const describe = `
SELECT c.key_hash, c.id, c.account_id, c.name, c.key_prefix, c.scopes,
  COALESCE(c.rate_limit_per_minute, p.rate_limit_per_minute, 60), p.code, p.features, c.xmin, a.xmin, p.xmin
FROM unnest($1::bytea[]) AS k (key_hash)
JOIN credentials c ON c.key_hash = k.key_hash
JOIN accounts a ON a.id = c.account_id
JOIN plans p ON p.code = a.plan_code`
