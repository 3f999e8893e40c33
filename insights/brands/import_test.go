package brands_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/store"
	"aiv/store/storetest"
)

// line returns a line of a file.
func line(account store.ID, name string) string {
	return fmt.Sprintf(`{"account_id":%q,"kind":"own","name":%q,"aliases":[],"domains":[],"exclude":[],"match_case":false,"status":"active"}`+"\n",
		account.Text("acct"), name)
}

func (f *fixture) importLines(t testing.TB, lines ...string) error {
	t.Helper()
	_, err := (&brands.Admin{Pool: f.pool, Actor: "test"}).Import(t.Context(), strings.NewReader(strings.Join(lines, "")), nil)
	return err
}

// TestImportRefusals: a file is imported completely or not at all. The transcripts of cmd/aiv have the other faults, and
// what is imported.
func TestImportRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, named("Kovalt"))
	erased := f.newAccount(t)
	f.exec(t, `UPDATE accounts SET erased_at = now() WHERE id = $1`, erased)
	tooMany := []string{line(f.account, "Fenwick")}
	for i := range brands.MaxActive - 1 {
		tooMany = append(tooMany, line(f.account, fmt.Sprintf("Brand %d", i)))
	}
	for want, lines := range map[string][]string{
		"line 2: the account is erased": {tooMany[0], line(erased, "Kovalt")},
		"account " + f.account.Text("acct") + " would have 101 active brands; it may have at most 100": tooMany,
	} {
		equal(t, want, fmt.Sprint(f.importLines(t, lines...)))
	}
	equal(t, "1 Kovalt", storetest.Value[string](t, f.pool, `SELECT concat(count(*), ' ', min(name)) FROM brands`), "brands")
}

// TestImportBeforeErasure: an account is not erased between the check of its lines and the end of the import.
func TestImportBeforeErasure(t *testing.T) {
	storetest.SkipOnCitus(t, "other locks serialize changes of a reference table")
	t.Parallel()
	f := newFixture(t)
	f.create(t, named("Kovalt"))
	tx := storetest.Begin(t, f.pool, `SELECT FROM brand_revisions WHERE account_id = $1 FOR UPDATE`, f.account)
	imported := make(chan error, 1)
	go func() { imported <- f.importLines(t, line(f.account, "Ostrel")) }()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	_, err := f.pool.Exec(t.Context(), `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE NOWAIT`, f.account)
	equal(t, true, store.IsLockTimeout(err), "an erasure waits for the import")
	must(t, tx.Rollback(t.Context()))
	must(t, <-imported)
}
