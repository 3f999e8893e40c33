package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/task"
)

// A Standby is a hot standby of the primary, for reads. A read uses it only if it has replayed the WAL up to where the
// WAL of the primary ended when the request was counted. Such a read returns everything that was committed before the
// request, by any process, as a read of the primary does.
//
// Each read verifies this on the connection that it uses, so the URL may name several standbys.
type Standby struct {
	cfg      StandbyConfig
	pool     *pgxpool.Pool
	identity string // of the primary's database

	// usable reports whether reads could use the standby at the latest check or read. Each read verifies its own
	// position; this only avoids useless attempts.
	usable atomic.Bool
	lag    atomic.Int64 // a time.Duration

	served, left atomic.Uint64

	// Only the check uses these, and its runs do not overlap.
	caughtUp time.Time // when the standby last had all that the primary had
	verified bool      // the settings of its sessions
	reported string    // why reads do not use the standby
}

// StandbyConfig contains what a Standby depends on.
type StandbyConfig struct {
	URL      string
	Primary  *pgxpool.Pool
	MaxConns int32
	Timeout  time.Duration // of a read
	MaxLag   time.Duration // how long a read waits for the standby to catch up
	Log      *slog.Logger
}

// StandbyStats reports the state of a Standby.
type StandbyStats struct {
	Served   uint64        // reads by the standby
	FellBack uint64        // reads by the primary instead
	Current  bool          // reads use the standby
	Lag      time.Duration // at the latest check: since the standby last had all that the primary had
}

// checkInterval is the time between two checks of a Standby.
const checkInterval = 500 * time.Millisecond

// OpenStandby makes a pool for a standby, which need not be reachable. It refuses a database that is distributed by
// Citus: its rows are on several servers, and the WAL of the coordinator does not show which of them a standby has.
func OpenStandby(ctx context.Context, cfg StandbyConfig) (*Standby, error) {
	config, err := parse(cfg.URL, hot)
	if err != nil {
		return nil, fmt.Errorf("open the standby: %w", err)
	}
	s := &Standby{cfg: cfg, caughtUp: time.Now(), reported: "not checked"}
	err = cfg.Primary.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if IsCitus(conn.Conn()) {
			return errors.New("a database that is distributed by Citus cannot be read from a standby")
		}
		return conn.QueryRow(ctx, databaseIdentity).Scan(&s.identity)
	})
	if err != nil {
		return nil, fmt.Errorf("open the standby: %w", err)
	}
	prepare := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}
		return s.identify(ctx, conn)
	}
	config.ConnConfig.RuntimeParams["statement_timeout"] = milliseconds(cfg.Timeout)
	config.MaxConns = cfg.MaxConns + 1 // one for the checks
	s.pool, err = newPool(ctx, config)
	return s, err
}

// Close closes the connections.
func (s *Standby) Close() { s.pool.Close() }

// Pool returns the connections, for metrics.
func (s *Standby) Pool() *pgxpool.Pool { return s.pool }

// Stats returns the state of s.
func (s *Standby) Stats() StandbyStats {
	return StandbyStats{s.served.Load(), s.left.Load(), s.usable.Load(), time.Duration(s.lag.Load())}
}

// Reasons not to use a standby.
var (
	errOtherDatabase = errors.New("the server is not a standby of the database")
	errNoStandby     = errors.New("the server is not a standby, or was promoted")
	errTimeline      = errors.New("the standby has not recorded yet that it follows the primary's timeline")
	errBehind        = errors.New("the standby is behind")
)

// identify refuses a connection to another database.
func (s *Standby) identify(ctx context.Context, conn *pgx.Conn) error {
	var identity string
	if err := conn.QueryRow(ctx, databaseIdentity).Scan(&identity); err != nil {
		return err
	}
	if identity != s.identity {
		return errOtherDatabase
	}
	return nil
}

// Read calls f with the standby if that has replayed the WAL up to position, a value of WALPosition, or does so within
// MaxLag. done is false if the read is left to the primary: the standby is behind or unreachable, or it failed while f
// used it.
func (s *Standby) Read(ctx context.Context, position string, f func(context.Context, Querier) error) (done bool, err error) {
	if done, err = s.read(ctx, position, f); done {
		s.served.Add(1)
	} else {
		s.left.Add(1)
	}
	return done, err
}

// read is Read without the counters.
func (s *Standby) read(ctx context.Context, position string, f func(context.Context, Querier) error) (done bool, err error) {
	// The caller does not know the position, so nothing shows whether a standby has replayed the WAL up to it.
	if !s.usable.Load() || position == "" {
		return false, nil
	}
	conn, err := s.acquire(ctx, position)
	if err != nil {
		// An error after the caller has given up says nothing about the standby.
		if ctx.Err() == nil {
			s.usable.Store(false) // until the next check
		}
		return false, nil
	}
	defer conn.Release()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err = f(ctx, conn)
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return false, nil // such as a conflict with the replay, which ends only this read
	}
	// The standby failed or took too long, so the primary repeats the read.
	if err != nil && caller.Err() == nil && IsUnavailable(err) {
		s.usable.Store(false)
		return false, nil
	}
	return true, err
}

// acquire returns a connection to a standby that has replayed the WAL up to position. It waits for that as long as
// MaxLag, and uses no connection between its checks. The pauses double, so that a long wait takes few checks.
func (s *Standby) acquire(ctx context.Context, position string) (*pgxpool.Conn, error) {
	until := time.Now().Add(s.cfg.MaxLag)
	// Canceling a statement costs its connection, so the last one may take longer.
	ctx, cancel := context.WithTimeout(ctx, s.cfg.MaxLag+200*time.Millisecond)
	defer cancel()
	for pause := 500 * time.Microsecond; ; pause *= 2 {
		conn, err := s.acquireCurrent(ctx, position)
		left := time.Until(until)
		if !errors.Is(err, errBehind) || left <= 0 {
			return conn, err
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// acquireCurrent returns a connection to a standby that has replayed the WAL up to position.
func (s *Standby) acquireCurrent(ctx context.Context, position string) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := replayed(ctx, conn, position); err != nil {
		conn.Release()
		return nil, err
	}
	return conn, nil
}

// replayed returns why the server of conn may lack something that was written before position, or nil.
func replayed(ctx context.Context, conn *pgxpool.Conn, position string) error {
	var standby, sameTimeline, replayed bool
	if err := conn.QueryRow(ctx, hasReplayed, position).Scan(&standby, &sameTimeline, &replayed); err != nil {
		return err
	}
	switch {
	case !standby:
		return errNoStandby
	case !sameTimeline:
		return errTimeline
	case !replayed:
		return errBehind
	}
	return nil
}

// Task returns the check that decides whether reads use the standby. It logs when they begin and cease to. A standby that
// reads cannot use is no failure of the check.
func (s *Standby) Task() task.Task {
	return task.Task{Name: "check_standby", Every: checkInterval, Prompt: true, Timeout: s.cfg.Timeout, Run: s.update}
}

// update checks the standby.
func (s *Standby) update(ctx context.Context) error {
	began := time.Now()
	err := s.check(ctx)
	if err == nil && !s.verified {
		err = VerifySession(ctx, s.pool)
		s.verified = err == nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil // the process ends
	}
	reason := ""
	if err == nil {
		// The time before the check, because more may have been written since.
		s.caughtUp = began
	} else {
		reason = err.Error()
	}
	s.lag.Store(int64(time.Since(s.caughtUp)))
	s.usable.Store(err == nil)
	switch {
	case reason == s.reported:
	case err == nil:
		s.cfg.Log.Info("reads use the standby")
	default:
		s.cfg.Log.Warn("reads do not use the standby", "error", reason)
	}
	if errors.Is(err, errNoStandby) {
		s.pool.Reset() // another server of the URL may be a standby
	}
	s.reported = reason
	return nil
}

// check returns why reads should not use the standby, or nil if it catches up with the primary within MaxLag.
func (s *Standby) check(ctx context.Context) error {
	var position string
	if err := s.cfg.Primary.QueryRow(ctx, `SELECT `+flushedPosition).Scan(&position); err != nil {
		return fmt.Errorf("reading the primary's WAL position: %w", err)
	}
	conn, err := s.acquire(ctx, position)
	if err != nil {
		return err
	}
	conn.Release()
	return nil
}

// WALPosition is a scalar SQL expression of type text: the timeline of the primary and where its WAL ends. Whatever a
// statement on the primary sees, or could have seen, was written before the position that the same or a later statement
// returns. It is an error on a server that accepts no writes. If the WAL ends at the end of a page, the position is
// after the header of the next page, and is replayed when something more is written.
//
// The timeline matters after a failover: a standby may have more of the old timeline than the server that was promoted,
// and then has a higher position than the new primary.
const WALPosition = `(SELECT left(pg_walfile_name(l), 8) || ' ' || l FROM pg_current_wal_insert_lsn() AS l)`

// flushedPosition is WALPosition without what the primary has not sent to its standbys, because it is not on its disk
// yet.
const flushedPosition = `(SELECT left(pg_walfile_name(l), 8) || ' ' || l FROM pg_current_wal_flush_lsn() AS l)`

// hasReplayed returns whether the server is a standby, whether it follows the timeline of the position $1, and whether
// it has replayed the WAL up to there. PostgreSQL shows a standby's timeline only in its control file, where a new one
// is recorded with the next pages written, so a standby is used again a little after a failover.
const hasReplayed = `
SELECT pg_is_in_recovery(),
  lpad(upper(to_hex(greatest(c.timeline_id, r.min_recovery_end_timeline))), 8, '0') = split_part($1, ' ', 1),
  COALESCE(pg_last_wal_replay_lsn() >= split_part($1, ' ', 2)::pg_lsn, false)
FROM pg_control_checkpoint() AS c, pg_control_recovery() AS r`

// databaseIdentity returns the same text on the primary and on its standbys.
const databaseIdentity = `SELECT system_identifier || ' ' || current_database() FROM pg_control_system()`
