package brands_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/store"
	"aiv/store/storetest"
)

// line returns a line of a file. id may be "".
func line(account store.ID, id, name, status string, domains ...string) string {
	if id != "" {
		id = `"id":"` + id + `",`
	}
	saved, _ := json.Marshal(append([]string{}, domains...))
	return fmt.Sprintf(`{%s"account_id":%q,"kind":"own","name":%q,"aliases":[],"domains":%s,"exclude":[],"match_case":false,"status":%q}`+"\n",
		id, account.Text("acct"), name, saved, status)
}

func (f *fixture) importLines(t testing.TB, lines ...string) error {
	t.Helper()
	_, err := (&brands.Admin{Pool: f.pool, Actor: "test"}).Import(t.Context(), strings.NewReader(strings.Join(lines, "")), nil)
	return err
}

// check compares the account's revision, the number of imports in audit_log, and the account's brands by creation.
func (f *fixture) check(t testing.TB, want string) {
	t.Helper()
	equal(t, want, storetest.Value[string](t, f.pool, `
SELECT concat((SELECT revision FROM brand_revisions WHERE account_id = $1), ' ', (SELECT count(*) FROM audit_log WHERE action = 'brands.import'), ': ',
  string_agg(name || CASE WHEN status = 'archived' THEN ' (archived)' ELSE '' END, ', ' ORDER BY number)) FROM brands WHERE account_id = $1`, f.account))
}

// TestImportTwiceChangesNothing: lines find their brands by id or name, the revision grows once, and a second import
// changes nothing.
func TestImportTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create(t, named("Kovalt")), f.create(t, named("Ostrel"))
	file := []string{
		line(f.account, a.ID.Text("brand"), "Ostrel", "active", "Kovalt.com/"), // the two exchange their names
		line(f.account, b.ID.Text("brand"), "Kovalt", "active"),
		line(f.account, store.NewID().Text("brand"), "Halden", "archived"),
		line(f.account, "", "Fenwick", "active"),
	}
	for range 2 {
		must(t, f.importLines(t, file...))
		f.check(t, "3 1: Ostrel, Kovalt, Halden (archived), Fenwick")
	}
	// An archived brand only: the active brands are the same.
	must(t, f.importLines(t, line(f.account, "", "halden", "archived")))
	f.check(t, "3 2: Ostrel, Kovalt, halden (archived), Fenwick")
	// Of brands with equal names the active one is replaced.
	f.create(t, named("Halden"))
	must(t, f.importLines(t, line(f.account, store.NewID().Text("brand"), "ostrel", "archived")))
	must(t, f.importLines(t, line(f.account, "", "HALDEN", "active"), line(f.account, "", "OSTREL", "active")))
	f.check(t, "5 4: OSTREL, Kovalt, halden (archived), Fenwick, HALDEN, ostrel (archived)")
}

// TestImportInAnyOrder: a line without an id leaves the brand of a line with an id alone, wherever the two are.
func TestImportInAnyOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create(t, named("Kovalt"))
	byID, byName := line(f.account, a.ID.Text("brand"), "Ostrel", "active"), line(f.account, "", "Ostrel", "archived")
	for _, file := range [][]string{{byName, byID}, {byName, byID}, {byID, byName}} {
		must(t, f.importLines(t, file...))
		f.check(t, "2 1: Ostrel, Ostrel (archived)")
	}
}

// TestImportRefusals: a file is imported completely or not at all. The transcripts of cmd/aiv have the other faults.
func TestImportRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, named("Kovalt"))
	erased := f.newAccount(t)
	f.exec(t, `UPDATE accounts SET erased_at = now() WHERE id = $1`, erased)
	tooMany := []string{line(f.account, "", "Fenwick", "active")}
	for i := range brands.MaxActive - 1 {
		tooMany = append(tooMany, line(f.account, "", fmt.Sprintf("Brand %d", i), "active"))
	}
	for want, lines := range map[string][]string{
		"line 2: the account is erased": {tooMany[0], line(erased, "", "Kovalt", "active")},
		"account " + f.account.Text("acct") + " would have 101 active brands; it may have at most 100": tooMany,
	} {
		equal(t, want, fmt.Sprint(f.importLines(t, lines...)))
	}
	f.check(t, "1 0: Kovalt")
}

// TestImportBeforeErasure: an account is not erased between the check of its lines and the end of the import.
func TestImportBeforeErasure(t *testing.T) {
	storetest.SkipOnCitus(t, "other locks serialize changes of a reference table")
	t.Parallel()
	f := newFixture(t)
	f.create(t, named("Kovalt"))
	tx := storetest.Begin(t, f.pool, `SELECT FROM brand_revisions WHERE account_id = $1 FOR UPDATE`, f.account)
	imported := make(chan error, 1)
	go func() { imported <- f.importLines(t, line(f.account, "", "Ostrel", "active")) }()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	_, err := f.pool.Exec(t.Context(), `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE NOWAIT`, f.account)
	equal(t, true, store.IsLockTimeout(err), "an erasure waits for the import")
	must(t, tx.Rollback(t.Context()))
	must(t, <-imported)
}
