package catalog_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"
)

// TestAtReadsOnlyAfterAChange: each change has a new revision and a new snapshot; without a change the database is not read.
func TestAtReadsOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
	c := catalog.New(f.pool)
	first := f.now(t, c)
	if again := f.now(t, c); again != first {
		t.Error("a revision was read twice")
	}
	f.load(t, model("m2"))
	second := f.now(t, c)
	if second == first || second.Model("m2") == nil || first.Model("m2") != nil {
		t.Error("the change is missing from the next snapshot, or is in the previous one")
	}
	for _, d := range catalog.Dependencies {
		must(t, f.admin.SetDependency(t.Context(), "acme", d, true, "checked"))
	}
	if m := f.now(t, c).Model("m"); !m.GroundedSearchAvailable() || len(m.Unmet) > 0 {
		t.Errorf("dependencies are still unmet: %v", m.Unmet)
	}
	// A restored database has an earlier revision than the snapshot.
	f.exec(t, `UPDATE catalog_revision SET revision = 7`)
	f.exec(t, `DELETE FROM models WHERE id = 'm2'`)
	if restored := f.now(t, c); restored.Revision != 7 || restored.Model("m2") != nil {
		t.Errorf("after a restore: revision %d", restored.Revision)
	}
	f.pool.Close()
	if _, err := c.At(t.Context(), 8); err == nil {
		t.Error("At returned a snapshot of a revision that it could not read")
	}
	if _, err := c.At(t.Context(), 7); err != nil {
		t.Errorf("At needs the database for the revision that it keeps: %v", err)
	}
}

// TestRevisionNeverRepeats: a change increases the revision, to the time in microseconds at least: a restored database does not
// repeat one.
func TestRevisionNeverRepeats(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
	began := f.revision(t)
	for _, before := range []int64{7, began, began + time.Hour.Microseconds()} {
		f.exec(t, `UPDATE catalog_revision SET revision = $1`, before)
		must(t, f.admin.SetDependency(t.Context(), "acme", "contract", true, "checked"))
		if got := f.revision(t); got <= max(before, began) {
			t.Errorf("a change after revision %d at the time %d made revision %d", before, began, got)
		}
	}
}

// TestAtDuringOlderLoad: the catalog changes after a load has read the revision. The load returns what the catalog was
// then, and a caller that knows the later revision does not get its result.
func TestAtDuringOlderLoad(t *testing.T) {
	url := storetest.URL(t)
	open := func(conns int32) *fixture {
		pool, err := store.OpenHot(t.Context(), url+"&lock_timeout=1min", conns)
		must(t, err)
		t.Cleanup(pool.Close)
		return &fixture{pool: pool, admin: &catalog.Admin{Pool: pool, Actor: "olga"}}
	}
	f := open(4)
	f.load(t, acme, model("m"))
	c := catalog.New(open(1).pool) // one connection; the first load prepares its statements
	f.now(t, c)
	f.load(t, model("m2"))

	// A load reads the revision and then waits for the models.
	lock, err := f.pool.Begin(t.Context())
	must(t, err)
	defer lock.Rollback(context.Background())
	_, err = lock.Exec(t.Context(), `LOCK TABLE models`)
	must(t, err)
	var revisions [2]int64
	var snapshots [2]*catalog.Snapshot
	var wg sync.WaitGroup
	at := func(i int) {
		revision := f.revision(t)
		revisions[i] = revision
		wg.Go(func() {
			var err error
			if snapshots[i], err = c.At(t.Context(), revision); err != nil {
				t.Error(err)
			}
		})
	}
	at(0)
	storetest.UntilWaiting(t, f.pool, "relation")
	must(t, f.admin.SetDependency(t.Context(), "acme", "contract", true, "checked"))
	at(1)
	storetest.Eventually(t, "the second caller waits for the load", func() bool { return waitingInAt() == 2 })
	must(t, lock.Rollback(t.Context()))
	wg.Wait()
	for i, snapshot := range snapshots {
		unmet := len(catalog.Dependencies) - i
		if snapshot == nil || snapshot.Revision != revisions[i] || len(snapshot.Model("m").Unmet) != unmet {
			t.Errorf("At(%d) returned %+v", revisions[i], snapshot)
		}
	}
}

// waitingInAt returns the number of goroutines of the process that are in Catalog.At. The test that uses it is
// not parallel.
func waitingInAt() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "aiv/catalog.(*Catalog).At(")
}
