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

// TestMatchCase: a name with one word character needs match_case, whichever of the two changes.
func TestMatchCase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	x := named("X")
	x.MatchCase = new(true)
	b := f.create(t, x)
	check := func(at string, c brands.Change) {
		t.Helper()
		err := f.tryUpdate(t, b.ID, c)
		if e, ok := errors.AsType[*brands.InvalidError](err); !ok || len(e.Faults) != 1 || e.Faults[0].At != at {
			t.Errorf("got %v, want a fault of %s", err, at)
		}
	}
	check("name", brands.Change{MatchCase: new(false)})
	check("name", brands.Change{MatchCase: new(false), Aliases: []string{"Kovalt"}})
	f.update(t, b.ID, brands.Change{Name: new("Kovalt"), MatchCase: new(false)})
	check("exclude/0", brands.Change{Exclude: []string{"Y"}})
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
