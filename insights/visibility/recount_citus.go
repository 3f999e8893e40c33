package visibility

import "aiv/store"

// The statements that look for accounts to recount, on Citus. $1 are the accounts on reachable servers, or NULL for
// all.
var (
	citusChangedAccounts = changedAccounts + ` AND ` + store.AmongAccounts("account_id", "$1")

	citusBehindAccounts = citusChangedAccounts + `
UNION
SELECT b.account_id FROM brand_revisions b
WHERE ` + store.AmongAccounts("b.account_id", "$1") + ` AND (
  NOT EXISTS (SELECT FROM visibility_recounts c WHERE c.account_id = b.account_id AND c.revision >= b.revision
    AND ` + store.AmongAccounts("c.account_id", "$1") + `)
  OR EXISTS (SELECT FROM visibility_facts f WHERE f.account_id = b.account_id AND NOT f.deleted AND f.revision < b.revision
    AND ` + store.AmongAccounts("f.account_id", "$1") + `))
UNION
SELECT l.account_id FROM visibility_backlog l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id
WHERE r.finished_at IS NOT NULL AND ` + store.AmongAccounts("l.account_id", "$1") + ` AND ` + store.AmongAccounts("r.account_id", "$1")
)
