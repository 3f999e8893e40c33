package brands_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/brands"
	"aiv/store"
)

// TestEachTextHasOneFault: each text has at most one fault, and domains are replaced by the form in which they are saved.
func TestEachTextHasOneFault(t *testing.T) {
	t.Parallel()
	many := make([]string, 21)
	for i := range many {
		many[i] = "text " + strconv.Itoa(10+i)
	}
	for _, tt := range []struct {
		change brands.Change
		want   []string
	}{
		{named("Kovalt", "Kovalt CRM"), nil},
		{named("", "!!", strings.Repeat("a", 129), "Kovalt", "Kovalt", "kovalt"), []string{"name", "aliases/0", "aliases/1", "aliases/3"}},
		{named(strings.Repeat("é", 128), "K"), []string{"aliases/0"}},
		{brands.Change{Name: new("K"), MatchCase: new(true), Exclude: []string{"X", "", "X"}}, []string{"exclude/1", "exclude/2"}},
		{brands.Change{Name: new("K")}, nil}, // as the brand's match_case may be true
		{brands.Change{Aliases: many, Exclude: many}, []string{"aliases", "exclude"}},
		{brands.Change{Aliases: many[:20], Exclude: many[:20]}, nil},
		{brands.Change{Domains: []string{"Kovalt.com/", "localhost", "https://kovalt.com", strings.Repeat("a", 513)}},
			[]string{"domains/1", "domains/2", "domains/3"}},
	} {
		var got []string
		for _, f := range tt.change.Check() {
			got = append(got, f.At)
			if f.Detail == "" {
				t.Errorf("%s has no detail", f.At)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.change, diff)
		}
	}
	sent := []string{" HTTPS://Kovalt.com/ ", "github.com/kovalt/"}
	c := brands.Change{Domains: sent}
	if faults := c.Check(); len(faults) > 0 || !slices.Equal(c.Domains, []string{"kovalt.com", "github.com/kovalt"}) || sent[1] != "github.com/kovalt/" {
		t.Errorf("got %q and %v", c.Domains, faults)
	}
}

// TestRevisionGrowsWithActiveBrands: the revision grows by one when the active brands change, and not otherwise.
func TestRevisionGrowsWithActiveBrands(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if r := f.revision(t); r != 0 {
		t.Fatalf("an account without brands has the revision %d", r)
	}
	first := f.create(t, named("Kovalt"))
	if r := f.revision(t); r != 1 || first.Number != 1 || first.Status != brands.Active || first.Domains == nil {
		t.Fatalf("revision %d, brand %+v", r, first)
	}
	for _, tt := range []struct {
		name     string
		change   brands.Change
		revision int64
		changed  bool
	}{
		{"nothing", brands.Change{}, 1, false},
		{"the same values", brands.Change{Name: new("Kovalt"), Kind: new(brands.Competitor), Aliases: []string{}, Status: new(brands.Active)}, 1, false},
		{"the case of the name", brands.Change{Name: new("KOVALT")}, 2, true},
		{"several members", brands.Change{Name: new("Kovalt"), Kind: new(brands.Own), Aliases: []string{"Kovalt CRM"}}, 3, true},
		{"the status and a name", brands.Change{Status: new(brands.Archived), Name: new("Kovalt AG")}, 4, true},
		{"an archived brand", brands.Change{Name: new("Ostrel")}, 4, true},
		{"an archived brand, nothing", archive, 4, false},
		{"the status again", brands.Change{Status: new(brands.Active)}, 5, true},
	} {
		before, err := brands.Get(t.Context(), f.pool, f.account, first.ID)
		must(t, err)
		after, revision := f.update(t, first.ID, tt.change)
		if revision != tt.revision || after.UpdatedAt.After(before.UpdatedAt) != tt.changed || !after.CreatedAt.Equal(first.CreatedAt) || after.Number != 1 {
			t.Errorf("%s: revision %d, want %d; updated from %v to %v", tt.name, revision, tt.revision, before.UpdatedAt, after.UpdatedAt)
		}
	}
}

// TestPendingSince: the time of the first change after a finished recount stays until the next recount has ended.
func TestPendingSince(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.create(t, named("Kovalt"))
	isNew := func(name string) bool {
		t.Helper()
		f.exec(t, `UPDATE brand_revisions SET changed_at = 'epoch', pending_since = 'epoch'`)
		f.update(t, b.ID, brands.Change{Name: &name})
		var pending, changed bool
		must(t, f.pool.QueryRow(t.Context(), `SELECT pending_since > 'epoch', changed_at > 'epoch' FROM brand_revisions`).Scan(&pending, &changed))
		if !changed {
			t.Error("changed_at is not set")
		}
		return pending
	}
	if isNew("Kovalt 2") {
		t.Error("the recount of the first revision has not ended")
	}
	f.exec(t, `INSERT INTO visibility_recounts (account_id, revision) SELECT account_id, revision - 1 FROM brand_revisions`)
	if isNew("Kovalt 3") {
		t.Error("the recount of the second revision has not ended")
	}
	f.exec(t, `UPDATE visibility_recounts SET revision = 3`)
	if !isNew("Kovalt 4") {
		t.Error("the recount of the third revision has ended")
	}
}

// TestConflictsAreAllReported: names, aliases and domains are unique among the active brands of an account, and all that are not are
// reported.
func TestConflictsAreAllReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	own := named("Kovalt", "Kovalt CRM")
	own.Domains = []string{"kovalt.com"}
	first := f.create(t, own)
	second := f.create(t, named("Ostrel", "Ostrel", "OSTREL"))

	third := named("kovalt-crm", "Halden", "ostrel")
	third.Domains = []string{"halden.com", "kovalt.com"}
	if faults := third.Check(); len(faults) > 0 {
		t.Fatal(faults)
	}
	_, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), third)
	e, ok := errors.AsType[*brands.ConflictError](err)
	if !ok {
		t.Fatal(err)
	}
	want := []brands.Conflict{{At: "name", Other: first.ID}, {At: "aliases/1", Other: second.ID}, {At: "domains/1", Other: first.ID, Domain: true}}
	if diff := cmp.Diff(want, e.Conflicts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := e.Conflicts[2].Detail(), "is also a domain of "+first.ID.Text("brand"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if f.revision(t) != 2 {
		t.Error("a refused brand has changed the revision")
	}

	// An archived brand reserves nothing, may have any name, and becomes active only if all of it is free.
	f.update(t, first.ID, archive)
	taker := named("Kovalt")
	taker.Domains = own.Domains
	other := f.create(t, taker)
	f.update(t, second.ID, brands.Change{Name: new("Ostrel AG")})
	_, err = brands.Update(t.Context(), f.pool, f.account, first.ID, brands.Change{Status: new(brands.Active)})
	if got, want := conflictsOf(err), []string{"name", "domains/0"}; !slices.Equal(got, want) {
		t.Errorf("reactivating: got %v (%v), want %v", got, err, want)
	}
	f.update(t, first.ID, brands.Change{Name: new("Kovalt Classic"), Domains: []string{}, Status: new(brands.Active)})
	_, err = brands.Update(t.Context(), f.pool, f.account, other.ID, brands.Change{Aliases: []string{"Kovalt CRM"}})
	if got, want := conflictsOf(err), []string{"aliases/0"}; !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}

	// Other accounts have their own names.
	g := &fixture{f.pool, f.newAccount(t)}
	g.create(t, own)
	if _, err := brands.Update(t.Context(), f.pool, g.account, first.ID, brands.Change{}); !errors.Is(err, brands.ErrNotFound) {
		t.Errorf("another account's brand: got %v", err)
	}
}

// TestMatchCase: a name with one word character needs match_case, whichever of the two changes.
func TestMatchCase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	x := named("X")
	x.MatchCase = new(true)
	b := f.create(t, x)
	for _, c := range []brands.Change{{MatchCase: new(false)}, {MatchCase: new(false), Aliases: []string{"Kovalt"}}} {
		_, err := brands.Update(t.Context(), f.pool, f.account, b.ID, c)
		e, ok := errors.AsType[*brands.InvalidError](err)
		if !ok || len(e.Faults) != 1 || e.Faults[0].At != "name" {
			t.Errorf("got %v, want a fault of the name", err)
		}
	}
	f.update(t, b.ID, brands.Change{Name: new("Kovalt"), MatchCase: new(false)})
	if _, err := brands.Update(t.Context(), f.pool, f.account, b.ID, brands.Change{Exclude: []string{"Y"}}); err == nil {
		t.Error("an excluded phrase of one letter was saved without match_case")
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
	if _, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), named("Halden")); !errors.Is(err, brands.ErrTooManyActive) {
		t.Errorf("got %v", err)
	}
	if _, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), named("Ostrel")); conflictsOf(err) == nil {
		t.Errorf("a repeated create: got %v, want a conflict", err)
	}
	if _, err := brands.Update(t.Context(), f.pool, f.account, archived.ID, brands.Change{Status: new(brands.Active)}); !errors.Is(err, brands.ErrTooManyActive) {
		t.Errorf("got %v", err)
	}
	f.exec(t, `UPDATE brands SET status = 'archived' WHERE account_id = $1 AND number <= 50`, f.account)
	f.fill(t, 898, brands.Archived)
	if b := f.create(t, named("Halden")); b.Number != 1000 {
		t.Errorf("the last brand has the number %d", b.Number)
	}
	if _, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), named("Fenwick")); !errors.Is(err, brands.ErrTooMany) {
		t.Errorf("got %v", err)
	}
}

// TestConcurrentChanges: concurrent creates, reactivations and changes of names do not exceed the bounds, make no equal
// names, and raise the revision once each.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var active, archived []store.ID
	for i := range 8 {
		active = append(active, f.create(t, named(fmt.Sprintf("Active %d", i))).ID)
		archived = append(archived, f.create(t, named(fmt.Sprintf("Archived %d", i))).ID)
		f.update(t, archived[i], archive)
	}
	f.fill(t, 87, brands.Active)
	before := f.revision(t)
	var added, renamed atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		for _, add := range []func() error{func() error {
			_, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), named(fmt.Sprintf("New %d", i)))
			return err
		}, func() error {
			_, err := brands.Update(t.Context(), f.pool, f.account, archived[i], brands.Change{Status: new(brands.Active)})
			return err
		}} {
			group.Go(func() {
				if err := add(); err == nil {
					added.Add(1)
				} else if !errors.Is(err, brands.ErrTooManyActive) {
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			_, err := brands.Update(t.Context(), f.pool, f.account, active[i], brands.Change{Name: new("Kovalt")})
			if err == nil {
				renamed.Add(1)
			} else if conflictsOf(err) == nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	all, revision, err := brands.ReadActive(t.Context(), f.pool, f.account)
	must(t, err)
	if len(all) != brands.MaxActive || added.Load() != 5 || renamed.Load() != 1 || revision != before+6 {
		t.Errorf("%d active brands, %d added, %d renamed, revision from %d to %d", len(all), added.Load(), renamed.Load(), before, revision)
	}
}
