package catalog_test

import (
	"context"
	"errors"
	"fmt"
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
		if err := f.admin.SetDependency(t.Context(), "acme", d, true, "checked"); err != nil {
			t.Fatal(err)
		}
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
		if err := f.admin.SetDependency(t.Context(), "acme", "contract", true, "checked"); err != nil {
			t.Fatal(err)
		}
		if got := f.revision(t); got <= max(before, began) {
			t.Errorf("a change after revision %d at the time %d made revision %d", before, began, got)
		}
	}
}

// TestAtUnderChange: At never returns an earlier revision than the one that its caller read.
func TestAtUnderChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
	c := catalog.New(f.pool)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var revision int64
				if err := f.pool.QueryRow(t.Context(), `SELECT `+catalog.RevisionSQL).Scan(&revision); err != nil {
					t.Error(err)
					return
				}
				snapshot, err := c.At(t.Context(), revision)
				if err != nil {
					t.Error(err)
					return
				}
				if snapshot.Revision < revision {
					t.Errorf("At(%d) returned revision %d", revision, snapshot.Revision)
					return
				}
				want := fmt.Sprint(snapshot.Revision)
				if got := snapshot.Model("m").Name; got != want && got != "One" {
					t.Errorf("the snapshot of revision %s has the model of revision %s", want, got)
					return
				}
			}
		})
	}
	for range 30 {
		f.exec(t, `WITH r AS (UPDATE catalog_revision SET revision = revision + 1 RETURNING revision) UPDATE models SET name = revision::text FROM r`)
	}
	close(done)
	wg.Wait()
}

// TestAtDuringOlderLoad: the catalog changes after a load has read the revision. A caller that knows the later revision
// must not get the result of that load.
func TestAtDuringOlderLoad(t *testing.T) {
	url := storetest.URL(t)
	open := func(conns int32) *fixture {
		pool, err := store.OpenHot(t.Context(), url+"&lock_timeout=1min", conns)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return &fixture{pool: pool, admin: &catalog.Admin{Pool: pool, Actor: "olga"}}
	}
	f := open(4)
	f.load(t, acme, model("m"))
	c := catalog.New(open(1).pool) // one connection; the first load prepares its statements
	f.now(t, c)
	f.load(t, model("m2"))
	reading := f.revision(t)

	// The load reads the revision and then waits for the methodologies.
	release := f.lockMethodologies(t)
	var wg sync.WaitGroup
	at := func(revision int64) {
		wg.Go(func() {
			snapshot, err := c.At(t.Context(), revision)
			if err != nil {
				t.Error(err)
			} else if snapshot.Revision < revision {
				t.Errorf("At(%d) returned revision %d", revision, snapshot.Revision)
			}
		})
	}
	at(reading)
	f.waitingLoad(t)
	if err := f.admin.SetDependency(t.Context(), "acme", "contract", true, "checked"); err != nil {
		t.Fatal(err)
	}
	at(f.revision(t))
	storetest.Eventually(t, "the second caller waits for the load", func() bool { return waitingInAt() == 2 })
	release()
	wg.Wait()
}

// TestAtWithContext: a caller stops waiting when its context ends, whether it started the load or joined it. The load
// goes on for the other callers.
func TestAtWithContext(t *testing.T) {
	f := newFixture(t, acme, model("m"))
	c := catalog.New(f.pool)
	revision := f.revision(t)
	release := f.lockMethodologies(t)
	callers := 0
	start := func(ctx context.Context) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, err := c.At(ctx, revision)
			result <- err
		}()
		callers++
		storetest.Eventually(t, "the caller waits", func() bool { return waitingInAt() == callers })
		return result
	}
	// A caller that waited for the load would get another error.
	wait := func(name string, result <-chan error, want error) {
		t.Helper()
		if err := <-result; !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	firstCtx, cancelFirst := context.WithCancel(t.Context())
	secondCtx, cancelSecond := context.WithCancel(t.Context())
	defer cancelFirst()
	defer cancelSecond()
	first, second, third := start(firstCtx), start(secondCtx), start(t.Context())
	cancelSecond()
	wait("the second caller", second, context.Canceled)
	cancelFirst()
	wait("the first caller", first, context.Canceled)
	release()
	wait("the third caller", third, nil)
}

// TestAtFails: when a load fails, only the callers that waited for it when it began get its error. Those that came
// later share the next load. A later call tries again.
func TestAtFails(t *testing.T) {
	f := newFixture(t, acme, model("m"))
	c := catalog.New(f.pool)
	revision := f.revision(t)
	release := f.lockMethodologies(t)
	const callers = 8
	errs := make(chan error, callers)
	call := func() {
		_, err := c.At(t.Context(), revision)
		errs <- err
	}
	fail := func() error {
		f.waitingLoad(t)
		f.exec(t, `SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'methodologies'::regclass`)
		return <-errs
	}
	go call()
	f.waitingLoad(t)
	for range callers - 1 {
		go call()
	}
	storetest.Eventually(t, "all callers wait", func() bool { return waitingInAt() == callers })
	if err := fail(); err == nil {
		t.Fatal("the first load did not fail")
	}
	second := fail()
	if second == nil {
		t.Fatal("the second load did not fail")
	}
	for range callers - 2 {
		if err := <-errs; err != second {
			t.Errorf("got another error: %v", err)
		}
	}
	release()
	f.now(t, c)
}

// waitingLoad waits until a load waits for lockMethodologies.
func (f *fixture) waitingLoad(t *testing.T) {
	t.Helper()
	storetest.Eventually(t, "the load waits for the lock", func() (waits bool) {
		const sql = `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'methodologies'::regclass)`
		err := f.pool.QueryRow(t.Context(), sql).Scan(&waits)
		return err == nil && waits
	})
}

// lockMethodologies blocks loads until release is called.
func (f *fixture) lockMethodologies(t *testing.T) (release func()) {
	t.Helper()
	lock, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Rollback(context.Background()) })
	if _, err := lock.Exec(t.Context(), `LOCK TABLE methodologies`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := lock.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// waitingInAt returns the number of goroutines of the process that are in Catalog.At. Tests that use it are not
// parallel.
func waitingInAt() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "aiv/catalog.(*Catalog).At(")
}
