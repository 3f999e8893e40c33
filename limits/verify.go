package limits

import "aiv/store"

// Invariants returns what always holds for the table of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{{
		Name: "window_limit",
		Doc:  "A window has admitted no more requests than the highest limit that was applied to it.",
		Query: `
SELECT format('credential %s of account %s, window %s: %s of %s', credential_id, account_id, window_start, used, rate_limit)
FROM api_rate_limit_buckets WHERE used > rate_limit`,
	}}
}
