package brands

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Invariants returns the invariants of the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name:  "brand_names",
		Doc:   "No two active brands of an account have equal names, aliases or domains.",
		Check: verifyNames,
	}, {
		Name: "brand_revisions",
		Doc:  "An account with active brands has a brand revision of at least 1.",
		Query: `
SELECT DISTINCT format('account %s: %s', b.account_id, COALESCE('revision ' || r.revision, 'no revision'))
FROM brands b LEFT JOIN brand_revisions r ON r.account_id = b.account_id
WHERE b.status = 'active' AND (r.revision IS NULL OR r.revision < 1)`,
	}}
}

// accountsAtATime bounds the accounts whose brands verifyNames has in memory.
const accountsAtATime = 100

// verifyNames compares the keys of names and domains, which SQL does not know. It goes through the accounts in the
// order of their ids, some at a time.
func verifyNames(ctx context.Context, tx pgx.Tx, report func(string)) error {
	var last store.ID
	for {
		rows, err := tx.Query(ctx, activeAccounts, last, accountsAtATime)
		if err != nil {
			return err
		}
		accounts, err := pgx.CollectRows(rows, pgx.RowTo[store.ID])
		if err != nil || len(accounts) == 0 {
			return err
		}
		for _, last = range accounts {
			active, _, err := ReadActive(ctx, tx, last)
			if err != nil {
				return err
			}
			t := newTaken(nil)
			for i := range active {
				for _, c := range t.conflicts(&active[i]) {
					report(fmt.Sprintf("brand %s of account %s: %s is also one of brand %s", active[i].ID.UUID(), last.UUID(), c.At, c.Other.UUID()))
				}
				t.add(&active[i])
			}
		}
	}
}

const activeAccounts = `SELECT DISTINCT account_id FROM brands WHERE status = 'active' AND account_id > $1 ORDER BY account_id LIMIT $2`
