package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

// TestClusters: with PostgreSQL's default settings of durability, sessions commit durably if the session waits for the
// disk and the server does not cheat. A read is left to the primary if the standby has not replayed the position, or
// fails; an error that is not the database's is the read's result.
func TestClusters(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	for url, want := range map[string]bool{
		primary.URL() + "&synchronous_commit=on":      true,
		primary.URL() + "&synchronous_commit=local":   true,
		primary.URL() + "&synchronous_commit=off":     false,
		storetest.Empty(t) + "&synchronous_commit=on": false, // with fsync off
	} {
		durable, err := store.Durable(t.Context(), open(t, url))
		must(t, err)
		equal(t, want, durable, url)
	}

	pool, standby := open(t, primary.URL()), primary.Standby(t)
	returns := func(err error) func(context.Context, store.Querier) error {
		return func(context.Context, store.Querier) error { return err }
	}
	reading := func(sql string) func(context.Context, store.Querier) error {
		return func(ctx context.Context, db store.Querier) error { return db.QueryRow(ctx, sql).Scan(new(string)) }
	}
	notFound := errors.New("not found")
	now, never := storetest.Value[string](t, pool, `SELECT `+store.WALPosition), "00000001 7FFFFFFF/0"
	storetest.Exec(t, pool, `CREATE VIEW later AS SELECT 1`) // as counting a request does; see WALPosition
	for _, test := range []struct {
		name     string
		position string
		f        func(context.Context, store.Querier) error
		done     bool
		err      error
		current  bool // after it
	}{
		{"what a read returns", now, reading(`SELECT pg_is_in_recovery()::text`), true, nil, true},
		{"an error of the caller", now, returns(notFound), true, notFound, true},
		{"an error of a statement", now, reading(`SELECT 1 / 0`), false, nil, true},
		{"a connection that is ended", now, reading(`SELECT pg_terminate_backend(pg_backend_pid())::text`), false, nil, true},
		{"a connection that is lost", now, returns(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)), false, nil, false},
		{"no position", "", reading(`SELECT ''`), false, nil, true},
		{"another timeline", "00000002 0/0", reading(`SELECT ''`), false, nil, false},
		{"a position that is not replayed", never, reading(`SELECT ''`), false, nil, false},
	} {
		config := store.StandbyConfig{URL: standby.URL(), Primary: pool, MaxConns: 2, Timeout: time.Minute, MaxLag: time.Minute,
			Log: slog.New(slog.DiscardHandler)}
		if test.position == never {
			config.MaxLag = 2 * time.Second
		}
		s, err := store.OpenStandby(t.Context(), config)
		must(t, err)
		equal(t, false, s.Stats().Current, "a standby is used before it was checked")
		storetest.Eventually(t, "reads use the standby", func() bool {
			must(t, s.Task().Run(t.Context()))
			return s.Stats().Current
		})
		before := s.Stats()
		done, err := s.Read(t.Context(), test.position, test.f)
		after := s.Stats()
		s.Close()
		if done != test.done || !errors.Is(err, test.err) || after.Current != test.current {
			t.Errorf("%s: done %v, %v, current %v; want %v, %v, %v", test.name, done, err, after.Current, test.done, test.err, test.current)
		}
		if served, left := after.Served-before.Served, after.FellBack-before.FellBack; served+left != 1 || (served == 1) != test.done {
			t.Errorf("%s: counted as %d by the standby and %d by the primary", test.name, served, left)
		}
	}
}

// TestStandbyOfCitus: a database that is distributed cannot be read from a standby, and any other can.
func TestStandbyOfCitus(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{URL: pool.Config().ConnString(), Primary: pool, MaxConns: 1})
	if err == nil {
		s.Close()
	}
	equal(t, storetest.OnCitus(), err != nil, "refused: ", err)
}
