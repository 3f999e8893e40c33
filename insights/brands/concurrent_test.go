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
