package catalog_test

import (
	"context"
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

// TestAt: a change is seen from the next revision on, and nothing is read again while nothing changes.
func TestAt(t *testing.T) {
	t.Parallel()
	s := newShop(t, acme, model("m"))
	shelf := catalog.New(s.pool)
	first := s.now(t, shelf)
	if again := s.now(t, shelf); again != first {
		t.Error("the catalog of one revision is read twice")
	}
	s.load(t, model("m2"))
	second := s.now(t, shelf)
	if second == first || second.Model("m2") == nil || first.Model("m2") != nil {
		t.Error("a change is not seen, or is seen in the snapshot before it")
	}
	for _, d := range catalog.Dependencies {
		if err := s.admin.SetDependency(t.Context(), "acme", d, true, "seen"); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.now(t, shelf).Model("m"); !m.GroundedSearchAvailable() || len(m.Unmet) > 0 {
		t.Errorf("a dependency that is met is not seen: %v", m.Unmet)
	}
	// A database that was restored has an earlier revision than the snapshot at hand.
	s.exec(t, `UPDATE catalog_revision SET revision = 7`)
	s.exec(t, `DELETE FROM models WHERE id = 'm2'`)
	if restored := s.now(t, shelf); restored.Revision != 7 || restored.Model("m2") != nil {
		t.Errorf("after a restore, revision %d is at hand", restored.Revision)
	}
	s.pool.Close()
	if _, err := shelf.At(t.Context(), 8); err == nil {
		t.Error("a snapshot is given for a revision that can't be read")
	}
	if _, err := shelf.At(t.Context(), 7); err != nil {
		t.Errorf("the snapshot at hand needs the database: %v", err)
	}
}

// TestAtUnderChange: whoever has read a revision gets the catalog of that one or of a later one, never an earlier one.
func TestAtUnderChange(t *testing.T) {
	t.Parallel()
	s := newShop(t, acme, model("m"))
	shelf := catalog.New(s.pool)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var revision int64
				if err := s.pool.QueryRow(t.Context(), `SELECT `+catalog.RevisionSQL).Scan(&revision); err != nil {
					t.Error(err)
					return
				}
				snapshot, err := shelf.At(t.Context(), revision)
				if err != nil {
					t.Error(err)
					return
				}
				if snapshot.Revision < revision {
					t.Errorf("revision %d was asked for, and %d given", revision, snapshot.Revision)
					return
				}
				want := fmt.Sprint(snapshot.Revision)
				if got := snapshot.Model("m").Name; got != want && got != "One" {
					t.Errorf("the snapshot of revision %s has the model of %s", want, got)
					return
				}
			}
		})
	}
	for range 100 {
		s.exec(t, `WITH r AS (UPDATE catalog_revision SET revision = revision + 1 RETURNING revision) UPDATE models SET name = revision::text FROM r`)
	}
	close(done)
	wg.Wait()
}

// TestAtOfALaterRevisionThanIsBeingRead: a load is under way when the catalog changes; who has seen the change and waits
// for that load needs another one.
func TestAtOfALaterRevisionThanIsBeingRead(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	open := func(conns int32) *shop {
		pool, err := store.Open(t.Context(), url, conns)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return &shop{pool: pool, admin: &catalog.Admin{Pool: pool, Actor: "olga"}}
	}
	s := open(4)
	s.load(t, acme, model("m"))
	shelf := catalog.New(open(1).pool) // one connection, whose statements are prepared by the first load
	s.now(t, shelf)
	s.load(t, model("m2"))
	reading := s.revision(t)

	// The load has read its revision, and then waits for the methodologies.
	lock, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback(context.Background())
	if _, err := lock.Exec(t.Context(), `LOCK TABLE methodologies`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	at := func(revision int64) {
		wg.Go(func() {
			snapshot, err := shelf.At(t.Context(), revision)
			if err != nil {
				t.Error(err)
			} else if snapshot.Revision < revision {
				t.Errorf("revision %d was asked for, and %d given", revision, snapshot.Revision)
			}
		})
	}
	at(reading)
	eventually(t, "the load waits for the lock", func() (waits bool) {
		err := s.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'methodologies'::regclass)`).Scan(&waits)
		return err == nil && waits
	})
	if err := s.admin.SetDependency(t.Context(), "acme", "contract", true, "seen"); err != nil {
		t.Fatal(err)
	}
	at(s.revision(t))
	eventually(t, "the later one waits for the load", func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "aiv/catalog.(*Catalog).At(") == 2
	})
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not so after 30 s: %s", what)
		case <-tick.C:
		}
	}
}
