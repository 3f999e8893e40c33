package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Kept hands databases, with what tests made of them, from tests that have ended to later ones: to create a database,
// connect to it and plan its statements costs more than most tests. Its zero value is empty.
type Kept[T any] struct {
	mu   sync.Mutex
	free []T // from the tests that have ended
}

// Take returns what an earlier test has left, or what create returns, which gets a test without cleanup. No other test
// uses it. When the test ends, clear removes its rows, so the test may change rows only. A test that fails leaves
// nothing, as it may have left a transaction. On a cluster each test has its own.
func (k *Kept[T]) Take(t testing.TB, create func(testing.TB) T, clear func(T) error) T {
	t.Helper()
	if OnCitus() {
		return create(t)
	}
	taken, ok := k.pop()
	if !ok {
		taken = create(lasting{t})
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := clear(taken); err != nil {
			t.Errorf("clear the database: %v", err)
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.free = append(k.free, taken)
	})
	return taken
}

// pop takes what was left last, if there is anything.
func (k *Kept[T]) pop() (last T, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.free) - 1
	if n < 0 {
		return last, false
	}
	last, k.free = k.free[n], k.free[:n]
	return last, true
}

// A Filled is a database that is filled once, and of which tests get copies. Its zero value is not filled yet.
type Filled[T any] struct {
	mu   sync.Mutex
	name string // of the filled database; "": there is none yet
	made T
}

// Copy returns the URL of a copy, and what fill returned, which must leave no connection open. On a cluster, where no
// database can be copied, each test fills its own.
func (f *Filled[T]) Copy(t testing.TB, fill func(t testing.TB, url string) T) (url string, made T) {
	t.Helper()
	if OnCitus() {
		url = URL(t)
		return url, fill(t, url)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name == "" {
		// The filled database must stay after the test that fills it.
		url := URL(lasting{t})
		f.made = fill(t, url)
		f.name = nameOf(url)
	}
	return create(t, f.name), f.made
}

// lasting is a test of which nothing is cleaned up before the test program ends, which ends the server.
type lasting struct{ testing.TB }

func (lasting) Cleanup(func())           {}
func (lasting) Context() context.Context { return context.Background() }

// Lasting returns t without its cleanup, for what is added to what a Kept keeps.
func Lasting(t testing.TB) testing.TB {
	if OnCitus() {
		return t
	}
	return lasting{t}
}

// Clear deletes the rows of tables, whatever refers to them, and then executes a statement unless it is "". Sequences
// go on.
func Clear(pool *pgxpool.Pool, tables, then string) error {
	// In this mode PostgreSQL checks no foreign keys and fires no triggers, so the order of the tables does not
	// matter.
	sql := "SET LOCAL session_replication_role = replica;"
	for table := range strings.FieldsSeq(tables) {
		sql += "DELETE FROM " + table + ";"
	}
	// The simple protocol sends all statements at once, and they are one transaction.
	_, err := pool.Exec(context.Background(), sql+then, pgx.QueryExecModeSimpleProtocol)
	CloseMost(pool)
	return err
}

// CloseMost closes the idle connections of a pool if it has many: the server has few.
func CloseMost(pool *pgxpool.Pool) {
	if pool.Stat().TotalConns() > 2 {
		pool.Reset()
	}
}
