package visibility

// The statements that look for accounts to recount, on Citus. $1 are the accounts on reachable servers, or NULL for
// all. Each table has the condition: Citus asks the servers of all shards that one of them leaves in.
const (
	citusChangedAccounts = changedAccounts + ` AND ($1::uuid[] IS NULL OR account_id = ANY ($1))`

	citusBehindAccounts = citusChangedAccounts + `
UNION
SELECT b.account_id FROM brand_revisions b
WHERE ($1::uuid[] IS NULL OR b.account_id = ANY ($1)) AND (
  NOT EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = b.account_id AND c.revision >= b.revision
    AND ($1::uuid[] IS NULL OR c.account_id = ANY ($1)))
  OR EXISTS (SELECT FROM visibility_facts f WHERE f.account_id = b.account_id AND NOT f.deleted AND f.revision < b.revision
    AND ($1::uuid[] IS NULL OR f.account_id = ANY ($1))))
UNION
SELECT l.account_id FROM visibility_backlog l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
WHERE r.finished_at IS NOT NULL AND ($1::uuid[] IS NULL OR l.account_id = ANY ($1)) AND ($1::uuid[] IS NULL OR r.account_id = ANY ($1))`
)
