package brands_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"aiv/insights/brands"
	"aiv/store"
	"aiv/store/storetest"
)

// TestCheck: names of 128 characters and lists of 20 are accepted, and domains are replaced by the form in which they are
// saved. The golden files have the faults.
func TestCheck(t *testing.T) {
	t.Parallel()
	sent := []string{" HTTPS://Kovalt.com/ ", "github.com/kovalt/"}
	c := brands.Change{Name: new(strings.Repeat("é", 128)), Domains: sent}
	for i := range 20 {
		c.Aliases, c.Exclude = append(c.Aliases, fmt.Sprint("alias ", i)), append(c.Exclude, fmt.Sprint("phrase ", i))
	}
	faults := c.Check()
	equal(t, "[] [kovalt.com github.com/kovalt]", fmt.Sprint(faults, c.Domains))
	equal(t, "github.com/kovalt/", sent[1], "what was sent")
}

// TestRevisionGrowsWithActiveBrands: the revision grows by one when the active brands change, and not otherwise.
func TestRevisionGrowsWithActiveBrands(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	equal(t, int64(0), f.revision(t), "without brands")
	first := f.create(t, named("Kovalt"))
	equal(t, "1 1 active", fmt.Sprint(f.revision(t), first.Number, " ", first.Status), "revision, number and status of the first brand")
	f.create(t, named("Ostrel"))
	same := named("Kovalt")
	same.Status = reactivate.Status
	before := first
	for _, tt := range []struct {
		name     string
		change   brands.Change
		revision int64
		changed  bool
	}{
		{"nothing", brands.Change{}, 2, false},
		{"the same values", same, 2, false},
		{"the case of the name", brands.Change{Name: new("KOVALT")}, 3, true},
		{"several members", brands.Change{Name: new("Kovalt"), Kind: new(brands.Own), Aliases: []string{"Kovalt CRM"}}, 4, true},
		{"the status and a name", brands.Change{Status: new(brands.Archived), Name: new("Kovalt AG")}, 5, true},
		{"an archived brand, to the name of an active one", brands.Change{Name: new("Ostrel")}, 5, true},
		{"an archived brand, nothing", archive, 5, false},
		{"the status again", brands.Change{Status: new(brands.Active), Name: new("Kovalt")}, 6, true},
	} {
		after := f.update(t, first.ID, tt.change)
		if r := f.revision(t); r != tt.revision || after.UpdatedAt.After(before.UpdatedAt) != tt.changed ||
			!after.CreatedAt.Equal(first.CreatedAt) || after.Number != 1 {
			t.Errorf("%s: revision %d, want %d; before %+v, after %+v", tt.name, r, tt.revision, before, after)
		}
		before = after
	}
}

// TestNumberOfBrandsIsBounded: an account has at most 100 active brands and 1,000 in all.
func TestNumberOfBrandsIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archived := f.create(t, named("Kovalt"))
	f.update(t, archived.ID, archive)
	f.fill(t, 99, brands.Active)
	f.create(t, named("Ostrel"))
	if _, err := f.tryCreate(t, named("Ostrel")); !isConflict(err, "name") {
		t.Errorf("a repeated create: got %v, want a conflict", err)
	}
	_, err := f.tryCreate(t, named("Halden"))
	for _, err := range []error{err, f.tryUpdate(t, archived.ID, reactivate)} {
		if !errors.Is(err, brands.ErrTooManyActive) {
			t.Errorf("the 101st active brand, created or reactivated: got %v", err)
		}
	}
	f.exec(t, `UPDATE brands SET status = 'archived' WHERE account_id = $1 AND number <= 50`, f.account)
	f.fill(t, 898, brands.Archived)
	if b := f.create(t, named("Halden")); b.Number != 1000 {
		t.Errorf("the last brand has the number %d", b.Number)
	}
	if _, err := f.tryCreate(t, named("Fenwick")); !errors.Is(err, brands.ErrTooMany) {
		t.Errorf("the 1,001st brand: got %v", err)
	}
}

// TestConcurrentChanges: concurrent creates, reactivations and changes of names do not exceed the bounds, make no equal
// names, and raise the revision once each.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var active, archived []store.ID
	for i := range 8 {
		active = append(active, f.create(t, named(fmt.Sprint("Active ", i))).ID)
		archived = append(archived, f.create(t, named(fmt.Sprint("Archived ", i))).ID)
		f.update(t, archived[i], archive)
	}
	f.fill(t, 87, brands.Active)
	before := f.revision(t)
	var added, renamed atomic.Int64
	storetest.AtOnce(24, func(n int) {
		i, done, refused := n/3, &added, false
		var err error
		switch n % 3 {
		case 0:
			_, err = f.tryCreate(t, named(fmt.Sprint("New ", i)))
			refused = errors.Is(err, brands.ErrTooManyActive)
		case 1:
			err = f.tryUpdate(t, archived[i], reactivate)
			refused = errors.Is(err, brands.ErrTooManyActive)
		case 2:
			err = f.tryUpdate(t, active[i], brands.Change{Name: new("Kovalt")})
			done, refused = &renamed, isConflict(err, "name")
		}
		if err == nil {
			done.Add(1)
		} else if !refused {
			t.Error(err)
		}
	})
	all, revision, err := brands.ReadActive(t.Context(), f.pool, f.account)
	must(t, err)
	equal(t, []int64{brands.MaxActive, 5, 1, 6}, []int64{int64(len(all)), added.Load(), renamed.Load(), revision - before}, "active, added, renamed, raised")
}

// line returns a line of a file.
func line(account store.ID, name string) string {
	return fmt.Sprintf(`{"account_id":%q,"kind":"own","name":%q,"aliases":[],"domains":[],"exclude":[],"match_case":false,"status":"active"}
`, account.Text("acct"), name)
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

// TestImportWhileErased: an import adds no brands to an account that is erased after its lines were checked.
func TestImportWhileErased(t *testing.T) {
	storetest.SkipOnCitus(t, "the wait for a row on another server ends after a second")
	t.Parallel()
	f := newFixture(t)
	f.create(t, named("Kovalt"))
	tx := storetest.Begin(t, f.pool, `SELECT FROM brand_revisions WHERE account_id = $1 FOR UPDATE`, f.account)
	imported := make(chan error, 1)
	go func() { imported <- f.importLines(t, line(f.account, "Ostrel")) }()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	f.exec(t, `UPDATE accounts SET erased_at = now() WHERE id = $1`, f.account)
	must(t, tx.Rollback(t.Context()))
	equal(t, "an account of the file has been erased meanwhile", fmt.Sprint(<-imported), "error")
	equal(t, 1, storetest.Value[int](t, f.pool, `SELECT count(*) FROM brands`), "brands")
}
