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

// TestClusters has the tests of servers with PostgreSQL's default settings of durability.
func TestClusters(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	standby := primary.Standby(t)
	pool := open(t, primary.URL())
	t.Run("durability", func(t *testing.T) { testDurable(t, primary.URL()) })
	t.Run("reads", func(t *testing.T) { testStandbyRead(t, pool, standby) })
	t.Run("waits", func(t *testing.T) { testStandbyWait(t, pool, standby) })
	t.Run("promotion", func(t *testing.T) { testPromotedStandby(t, pool, standby, primary.Standby(t)) })
}

// testDurable: sessions commit durably if the session waits for the disk and the server does not cheat.
func testDurable(t *testing.T, url string) {
	for url, want := range map[string]bool{
		url + "&synchronous_commit=on":                true,
		url + "&synchronous_commit=local":             true,
		url + "&synchronous_commit=off":               false,
		storetest.Empty(t) + "&synchronous_commit=on": false, // with fsync off
	} {
		durable, err := store.Durable(t.Context(), open(t, url))
		must(t, err)
		equal(t, want, durable, url)
	}
}

// openStandby opens a standby, and checks it until reads use it.
func openStandby(t *testing.T, primary *pgxpool.Pool, url string, maxLag time.Duration) *store.Standby {
	t.Helper()
	s, err := store.OpenStandby(t.Context(), store.StandbyConfig{
		URL: url, Primary: primary, MaxConns: 2, Timeout: time.Minute, MaxLag: maxLag, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(s.Close)
	equal(t, false, s.Stats().Current, "a standby is used before it was checked")
	storetest.Eventually(t, "reads use the standby", func() bool {
		must(t, s.Task().Run(t.Context()))
		return s.Stats().Current
	})
	return s
}

func reading(sql string) func(context.Context, store.Querier) error {
	return func(ctx context.Context, db store.Querier) error {
		var text string
		return db.QueryRow(ctx, sql).Scan(&text)
	}
}

// positionOf returns the position after what the primary has written, and writes something after it, as counting
// a request does. See WALPosition.
func positionOf(t *testing.T, primary *pgxpool.Pool) string {
	t.Helper()
	position := read[string](t, primary, `SELECT `+store.WALPosition)
	storetest.Exec(t, primary, `CREATE OR REPLACE VIEW later AS SELECT 1`)
	return position
}

// testStandbyRead: a read is left to the primary if the standby has not replayed the position, or fails; an error that
// is not the database's is the read's result.
func testStandbyRead(t *testing.T, pool *pgxpool.Pool, standby *storetest.Cluster) {
	returns := func(err error) func(context.Context, store.Querier) error {
		return func(context.Context, store.Querier) error { return err }
	}
	notFound := errors.New("not found")
	now, never := positionOf(t, pool), "00000001 7FFFFFFF/0"
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
		maxLag := time.Minute
		if test.position == never {
			maxLag = 2 * time.Second
		}
		s := openStandby(t, pool, standby.URL(), maxLag)
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
	s := openStandby(t, pool, standby.URL(), 10*time.Minute)
	standby.Exec(t, "postgres", `SELECT pg_wal_replay_pause()`)
	storetest.Eventually(t, "the standby has paused the replay", func() bool {
		return read[bool](t, s.Pool(), `SELECT pg_get_wal_replay_pause_state() = 'paused'`)
	})
	storetest.Exec(t, pool, `CREATE VIEW awaited AS SELECT '' AS text`)
	position := positionOf(t, pool)
	const reads = 8 // more than there are connections
	start := func(ctx context.Context) <-chan bool {
		ended := make(chan bool, reads)
		for range reads {
			go func() {
				done, err := s.Read(ctx, position, reading(`SELECT text FROM awaited`))
				if err != nil {
					t.Error(err)
				}
				ended <- done
			}()
		}
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	canceled, others := start(ctx), start(t.Context())
	storetest.Eventually(t, "all reads wait, and no connection is used", func() bool {
		stat := s.Pool().Stat()
		return stat.AcquireCount() > 4*reads && stat.AcquiredConns() == 0
	})
	cancel()
	for range reads {
		equal(t, false, <-canceled, "a canceled read is done by the standby")
	}
	if !s.Stats().Current {
		t.Error("the standby is not used because callers canceled reads")
	}
	standby.Exec(t, "postgres", `SELECT pg_wal_replay_resume()`)
	for range reads {
		equal(t, true, <-others, "a read of the position that was replayed is done by the standby")
	}
}

// testPromotedStandby: after a standby was promoted, reads use another one that the URL names.
func testPromotedStandby(t *testing.T, pool *pgxpool.Pool, promoted, other *storetest.Cluster) {
	s := openStandby(t, pool, storetest.ClusterURL("&target_session_attrs=standby", promoted, other), time.Minute)
	promoted.Exec(t, "postgres", `SELECT pg_promote()`)
	storetest.Eventually(t, "reads use the other standby", func() bool {
		must(t, s.Task().Run(t.Context()))
		var data string
		done, err := s.Read(t.Context(), positionOf(t, pool), func(ctx context.Context, db store.Querier) error {
			return db.QueryRow(ctx, `SELECT current_setting('data_directory')`).Scan(&data)
		})
		return done && err == nil && data == other.Data()
	})
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
