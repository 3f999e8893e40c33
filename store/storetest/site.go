package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// SkipOnCitus skips a test that says nothing about a cluster.
func SkipOnCitus(t testing.TB, why string) {
	t.Helper()
	if OnCitus() {
		t.Skip(why)
	}
}

// Value returns the only value that a query returns.
func Value[T any](t testing.TB, db store.Querier, sql string, args ...any) (v T) {
	t.Helper()
	Must(t, db.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// Verify reports the invariants that do not hold. Cleanups of a test may call it.
func Verify(t testing.TB, pool *pgxpool.Pool, invariants ...store.Invariant) {
	t.Helper()
	violations, err := store.Verify(context.WithoutCancel(t.Context()), pool, invariants)
	Must(t, err)
	for _, v := range violations {
		t.Errorf("%s: %s", v.Invariant.Doc, v.Rows)
	}
}

// AtOnce calls f n times at once.
func AtOnce(n int, f func(i int)) {
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { f(i) })
	}
	calls.Wait()
}

// HeldUp returns a pool for the database of pool that is held up once: before it sends a statement, or batch of
// statements, that contains sql. reached is closed when it is, and goOn lets it go on.
func HeldUp(t testing.TB, pool *pgxpool.Pool, sql string) (held *pgxpool.Pool, reached <-chan struct{}, goOn func()) {
	t.Helper()
	// stopped is closed when the statement is held up, and over when it may go on.
	stopped, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	held = WithTracer(t, pool, OnStatement{
		Matches: func(sent string) bool { return strings.Contains(sent, sql) },
		Do:      func(*pgx.Conn) { once.Do(func() { close(stopped); <-over }) },
	})
	goOn = sync.OnceFunc(func() { close(over) })
	t.Cleanup(goOn) // before the pool is closed, which waits for the connection
	return held, stopped, goOn
}
