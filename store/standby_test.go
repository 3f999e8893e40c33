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

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestStandby(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	standby := primary.Standby(t)
	pool, err := store.Open(t.Context(), primary.URL(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	t.Run("reads", func(t *testing.T) { testStandbyRead(t, pool, standby) })
	t.Run("waits", func(t *testing.T) { testStandbyWait(t, pool, standby) })
	t.Run("promotion", func(t *testing.T) { testPromotedStandby(t, pool, standby, primary.Standby(t)) })
}

// testStandbyRead: a read is left to the primary if the standby has not replayed the position, or fails; an error that
// is not the database's is the read's result.
func testStandbyRead(t *testing.T, pool *pgxpool.Pool, standby *storetest.Cluster) {
	t.Helper()
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
		if served, left := after.Served-before.Served, after.FellBack-before.FellBack; served+left != 1 || (served == 1) != test.done {
			t.Errorf("%s: counted as %d by the standby and %d by the primary", test.name, served, left)
		}
	}
}

// testStandbyWait: reads that wait for the standby use no connection. They end with their callers, which does not keep
// other reads from the standby, or when it has replayed their position.
func testStandbyWait(t *testing.T, pool *pgxpool.Pool, standby *storetest.Cluster) {
	t.Helper()
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{
		URL: standby.URL(), Primary: pool, MaxConns: 2, Timeout: time.Minute, MaxLag: 10 * time.Minute,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watching, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.Watch(watching)
	}()
	storetest.Eventually(t, "reads use the standby", func() bool { return s.Stats().Current })
	stop() // no check changes Current from here on
	<-watched

	standby.Exec(t, "postgres", `SELECT pg_wal_replay_pause()`)
	storetest.Eventually(t, "the standby has paused the replay", func() (paused bool) {
		err := s.Pool().QueryRow(t.Context(), `SELECT pg_get_wal_replay_pause_state() = 'paused'`).Scan(&paused)
		return err == nil && paused
	})
	var position string
	if _, err := pool.Exec(t.Context(), `CREATE VIEW awaited AS SELECT 1 AS n`); err != nil {
		t.Fatal(err)
	}
	if err := pool.QueryRow(t.Context(), `SELECT `+store.WALPosition).Scan(&position); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `CREATE VIEW later AS SELECT 1`); err != nil { // see WALPosition
		t.Fatal(err)
	}
	const reads = 8 // more than there are connections
	read := func(ctx context.Context) (ended chan bool) {
		ended = make(chan bool, reads)
		for range reads {
			go func() {
				done, err := s.Read(ctx, position, func(ctx context.Context, db store.Querier) error {
					var n int
					return db.QueryRow(ctx, `SELECT n FROM awaited`).Scan(&n)
				})
				if err != nil {
					t.Error(err)
				}
				ended <- done
			}()
		}
		return ended
	}
	ended := func(what string, reads chan bool, want bool) {
		t.Helper()
		for range cap(reads) {
			select {
			case done := <-reads:
				if done != want {
					t.Errorf("%s: a read by the standby: %v, want %v", what, done, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: the reads wait", what)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rest, cancelRest := context.WithCancel(t.Context())
	defer cancelRest()
	canceled, others := read(ctx), read(rest)
	storetest.Eventually(t, "all reads wait, and no connection is used", func() bool {
		stat := s.Pool().Stat()
		return stat.AcquireCount() > 4*reads && stat.AcquiredConns() == 0
	})
	cancel()
	ended("canceled reads", canceled, false)
	if !s.Stats().Current {
		t.Error("the standby is not used because callers canceled reads")
	}
	standby.Exec(t, "postgres", `SELECT pg_wal_replay_resume()`)
	ended("reads of the position that was replayed", others, true)
}

// testPromotedStandby: after a standby was promoted, reads use another one that the URL names.
func testPromotedStandby(t *testing.T, pool *pgxpool.Pool, promoted, other *storetest.Cluster) {
	t.Helper()
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
