package webhooks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// TestDerivedSecrets: the derivation never changes, or all customers' secrets would.
func TestDerivedSecrets(t *testing.T) {
	t.Parallel()
	m := &Master{[]byte(strings.Repeat("m", 32))}
	id, err := store.ParseID("wh", "wh_01k3v5zyj8f6arvv8ad0qs6z1h")
	must(t, err)
	got := []string{m.secret(id, 1), m.secret(id, 2), m.secret(store.ID{}, 1), (&Master{[]byte(strings.Repeat("n", 32))}).secret(id, 1)}
	want := []string{
		"whsec_IYj63cmtvDtfQnJdr8Uwo6D7skA7VD7LUOzz67WZIbo=",
		"whsec_nV8Rq/Y25xh+1Kaq8zAV8o+wCELRB6JhPV7JpbKkgOQ=",
		"whsec_/Y8hVB9pX4Tu2PzIxLq7uHkRO77twLY/V79mg08DHas=",
		"whsec_tI9LArLD6kCQigRcvKmuK8wow03qH2BA2lZj+yrOFwI=",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMasterSecret(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "master")
		must(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	pool := storetest.New(t)
	key := strings.Repeat("k", 32)
	if _, err := OpenMaster(t.Context(), pool, file(key[1:]+" \n")); err == nil || !strings.Contains(err.Error(), "has 31 bytes; it needs 32 or more") {
		t.Errorf("a short master: %v", err)
	}
	if _, err := OpenMaster(t.Context(), pool, file("")+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, text := range []string{key, key + "\n", key + " \r\n\t"} {
		m, err := OpenMaster(t.Context(), pool, file(text))
		if err != nil || string(m.key) != key {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := OpenMaster(t.Context(), pool, file(" "+key)); !errors.Is(err, ErrOtherMaster) {
		t.Errorf("another master: %v", err)
	}
	if _, err := OpenMaster(t.Context(), pool, ""); !errors.Is(err, ErrOtherMaster) {
		t.Errorf("the database's master: %v", err)
	}

	other := storetest.New(t)
	for range 2 {
		if m, err := OpenMaster(t.Context(), other, ""); err != nil || len(m.key) != 32 {
			t.Errorf("the database's master: %v", err)
		}
	}
	if _, err := OpenMaster(t.Context(), other, file(key)); !errors.Is(err, ErrOtherMaster) {
		t.Errorf("a file in place of the database's master: %v", err)
	}
}

// TestMasterStoredConcurrently: of two processes that store the first fingerprint at the same time, one with another
// secret does not start.
func TestMasterStoredConcurrently(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "master")
	must(t, os.WriteFile(file, []byte(strings.Repeat("k", 32)), 0o600))
	for name, want := range map[string]error{file: nil, "": ErrOtherMaster} {
		pool := storetest.New(t)
		first := beforeInsertMaster(func() {
			_, err := OpenMaster(t.Context(), pool, file)
			must(t, err)
		})
		if _, err := OpenMaster(t.Context(), storetest.WithTracer(t, pool, first), name); err != want {
			t.Errorf("the second process, with the master in %q: %v, want %v", name, err, want)
		}
	}
}

// beforeInsertMaster is a tracer that is called before insertMaster is executed.
type beforeInsertMaster func()

func (f beforeInsertMaster) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == insertMaster {
		f()
	}
	return ctx
}

func (beforeInsertMaster) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
