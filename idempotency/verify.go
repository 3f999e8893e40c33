package idempotency

import "aiv/store"

// Invariants returns what always holds for the table of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "idempotency_run",
		Doc:  "An idempotency record has a run that was created in the same transaction, and no other record has that run.",
		Query: `
SELECT format('record %s %s %s of account %s, run %s', i.method, i.route, i.key, i.account_id, i.run_id)
FROM idempotency_records i LEFT JOIN measurement_runs r ON (r.account_id, r.id) = (i.account_id, i.run_id)
WHERE r.created_at IS DISTINCT FROM i.created_at
UNION ALL
SELECT format('run %s of account %s has %s records', run_id, account_id, count(*)) FROM idempotency_records
GROUP BY account_id, run_id HAVING count(*) > 1`,
	}}
}
