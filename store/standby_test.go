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

// TestStandbyRead: a read is left to the primary if the standby has not replayed the position, or fails; an error that is not the
// database's is the read's result.
func TestStandbyRead(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	standby := primary.Standby(t)
	pool, err := store.Open(t.Context(), primary.URL(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{
		URL: standby.URL(), Primary: pool, MaxConns: 2, Timeout: 30 * time.Second, MaxLag: 4 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Stats().Current {
		t.Error("a standby is used before it was checked")
	}
	go s.Watch(t.Context())

	// position returns a position, and writes something after it, as counting a request does.
	position := func() (p string) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT `+store.WALPosition).Scan(&p); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), `CREATE OR REPLACE VIEW written AS SELECT 1`); err != nil {
			t.Fatal(err)
		}
		return p
	}
	query := func(sql string) func(context.Context, store.Querier) error {
		return func(ctx context.Context, db store.Querier) error {
			var text string
			return db.QueryRow(ctx, sql).Scan(&text)
		}
	}
	returns := func(err error) func(context.Context, store.Querier) error {
		return func(context.Context, store.Querier) error { return err }
	}
	notFound := errors.New("not found")
	for _, test := range []struct {
		name     string
		position string
		f        func(context.Context, store.Querier) error
		done     bool
		err      error
		current  bool // after it
	}{
		{"what a read returns", position(), query(`SELECT pg_is_in_recovery()::text`), true, nil, true},
		{"an error of the caller", position(), returns(notFound), true, notFound, true},
		{"an error of a statement", position(), query(`SELECT 1 / 0`), false, nil, true},
		{"a connection that is ended", position(), query(`SELECT pg_terminate_backend(pg_backend_pid())::text`), false, nil, true},
		{"a connection that is lost", position(), returns(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)), false, nil, false},
		{"no position", "", query(`SELECT ''`), false, nil, true},
		{"another timeline", "00000002 0/0", query(`SELECT ''`), false, nil, false},
		{"a position that is not replayed", "00000001 7FFFFFFF/0", query(`SELECT ''`), false, nil, false},
	} {
		storetest.Eventually(t, "reads use the standby before "+test.name, func() bool { return s.Stats().Current })
		before := s.Stats()
		done, err := s.Read(t.Context(), test.position, test.f)
		after := s.Stats()
		if done != test.done || !errors.Is(err, test.err) || after.Current != test.current {
			t.Errorf("%s: done %v, %v, current %v; want %v, %v, %v", test.name, done, err, after.Current, test.done, test.err, test.current)
		}
		if served, left := after.Served-before.Served, after.Left-before.Left; served+left != 1 || (served == 1) != test.done {
			t.Errorf("%s: counted as %d by the standby and %d by the primary", test.name, served, left)
		}
	}
}

// TestPromotedStandby: after a standby was promoted, reads use another one that the URL names.
func TestPromotedStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	promoted, other := primary.Standby(t), primary.Standby(t)
	pool, err := store.Open(t.Context(), primary.URL(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{
		URL: storetest.ClusterURL("&target_session_attrs=standby", promoted, other), Primary: pool, MaxConns: 2, Timeout: 5 * time.Second,
		MaxLag: 4 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Watch(t.Context())
	current := func() bool { return s.Stats().Current }
	storetest.Eventually(t, "reads use the first standby", current)
	promoted.Exec(t, "postgres", `SELECT pg_promote()`)
	storetest.Eventually(t, "reads use no standby", func() bool { return !current() })
	storetest.Eventually(t, "reads use the other standby", current)
}

// TestStandbyOfCitus: a database that is distributed cannot be read from a standby, and any other can.
func TestStandbyOfCitus(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{URL: pool.Config().ConnString(), Primary: pool, MaxConns: 1, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		s.Close()
	}
	if refused := err != nil; refused != storetest.OnCitus() {
		t.Errorf("got %v on Citus: %v", err, storetest.OnCitus())
	}
}
