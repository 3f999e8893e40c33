package brands_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/insights/brands"
	"aiv/store"
)

// atOnce calls f n times concurrently.
func atOnce(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// TestConcurrentNames: of concurrent creates with one name, one succeeds, and the others name its brand.
func TestConcurrentNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var made, refused atomic.Int32
	atOnce(8, func(i int) {
		_, err := brands.Create(t.Context(), f.pool, f.account, store.NewID(), named(fmt.Sprintf("Brand %d", i), "Kovalt"))
		switch {
		case err == nil:
			made.Add(1)
		case conflictsOf(err) != nil:
			refused.Add(1)
		default:
			t.Error(err)
		}
	})
	if made.Load() != 1 || refused.Load() != 7 || f.revision(t) != 1 {
		t.Errorf("%d brands were created and %d refused; revision %d", made.Load(), refused.Load(), f.revision(t))
	}
}

// TestConcurrentBounds: concurrent creates and reactivations do not exceed the bounds, and each one that succeeds
// raises the revision.
func TestConcurrentBounds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var archived []store.ID
	for i := range 8 {
		b := f.create(t, named(fmt.Sprintf("Archived %d", i)))
		f.update(t, b.ID, brands.Change{Status: new(brands.Archived)})
		archived = append(archived, b.ID)
	}
	f.fill(t, 95, brands.Active)
	before := f.revision(t)
	var succeeded atomic.Int64
	atOnce(16, func(i int) {
		var err error
		if i%2 == 0 {
			_, err = brands.Create(t.Context(), f.pool, f.account, store.NewID(), named(fmt.Sprintf("Brand %d", i)))
		} else {
			_, err = brands.Update(t.Context(), f.pool, f.account, archived[i/2], brands.Change{Status: new(brands.Active)})
		}
		switch {
		case err == nil:
			succeeded.Add(1)
		case !errors.Is(err, brands.ErrTooManyActive):
			t.Error(err)
		}
	})
	active, revision, err := brands.ReadActive(t.Context(), f.pool, f.account)
	if err != nil || len(active) != brands.MaxActive || succeeded.Load() != 5 || revision != before+5 {
		t.Errorf("%d active brands, %d succeeded, revision from %d to %d, %v", len(active), succeeded.Load(), before, revision, err)
	}
}

// TestConcurrentChanges: two brands that take each other's former name at the same time never have equal names, and no
// number is used twice.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create(t, named("Kovalt")), f.create(t, named("Ostrel"))
	var changes atomic.Int64
	atOnce(12, func(i int) {
		id, name := a.ID, []string{"Kovalt", "Halden"}[i/2%2]
		if i%2 == 1 {
			id = b.ID
		}
		before := name + fmt.Sprint(i)
		for _, n := range []string{name, before} {
			_, err := brands.Update(t.Context(), f.pool, f.account, id, brands.Change{Name: &n})
			if err != nil && conflictsOf(err) == nil {
				t.Error(err)
			}
			if err == nil {
				changes.Add(1)
			}
		}
	})
	active, revision, err := brands.ReadActive(t.Context(), f.pool, f.account)
	if err != nil || len(active) != 2 || active[0].Name == active[1].Name || active[0].Number == active[1].Number {
		t.Errorf("got %+v, %v", active, err)
	}
	if revision < 3 || revision > 2+changes.Load() {
		t.Errorf("the revision is %d after 2 brands and %d changes, of which some were none", revision, changes.Load())
	}
}
