package storetest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// waitingSession is a session's id, which Citus gives to the sessions on other servers as a part of their name.
	waitingSession = `COALESCE(substring(application_name FROM 'gpid=([0-9]+)')::bigint, pid)`

	// The query may have begun long before it waits, so its age is not the time it has waited.
	waiting = `FROM pg_stat_activity JOIN pg_locks USING (pid)
		WHERE datname = current_database() AND NOT granted`
	waitingStatements = waiting + ` AND clock_timestamp() - waitstart > make_interval(secs => $2) AND locktype = $1`
	waitingOnWorkers  = waiting + ` AND clock_timestamp() - waitstart > make_interval(secs => %L) AND locktype = %L`
)

// UntilWaiting waits until a statement of a test's database waits for a lock of the given kind, and returns the process
// id of its session.
func UntilWaiting(t testing.TB, pool *pgxpool.Pool, lock string) (pid int) {
	t.Helper()
	return UntilWaitingLonger(t, pool, lock, 0)
}

// UntilWaitingLonger is UntilWaiting for a wait that has lasted longer than the given time, and so ignores waits that
// end before. On a cluster the statement may wait on any server; its session is the coordinator's.
func UntilWaitingLonger(t testing.TB, pool *pgxpool.Pool, lock string, than time.Duration) (pid int) {
	t.Helper()
	sql := `SELECT COALESCE(max(` + waitingSession + `), 0) ` + waitingStatements
	args := []any{lock, than.Seconds()}
	if OnCitus() {
		// The first subquery is about the coordinator, the second about the other servers.
		sql = `SELECT GREATEST((SELECT COALESCE(max(` + waitingSession + `), 0) ` + waitingStatements + `),
			(SELECT max(result::bigint) FROM run_command_on_workers(format($3, $2::float8, $1::text)))
		) % 10000000000` // a global id is the server's number × 10^10 + the pid
		args = append(args, `SELECT COALESCE(max(`+waitingSession+`), 0) `+waitingOnWorkers)
	}
	Eventually(t, "a statement waits for a lock of the kind "+lock, func() bool {
		Must(t, pool.QueryRow(t.Context(), sql, args...).Scan(&pid))
		return pid != 0
	})
	return pid
}

// Waiting returns how many statements of a test's database wait for locks on this server.
func Waiting(t testing.TB, pool *pgxpool.Pool) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	Must(t, err)
	return n
}

// SetLockTimeout sets how long statements wait for locks on the servers of a cluster that have the rows of accounts, in
// sessions of which the first statement is executed later. A cluster does not pass on the lock_timeout of its sessions.
// It does nothing on PostgreSQL.
func SetLockTimeout(t testing.TB, pool *pgxpool.Pool, timeout string) {
	t.Helper()
	if !OnCitus() {
		return
	}
	var failed int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM run_command_on_workers(format('ALTER DATABASE %I SET lock_timeout = %L', current_database(), $1::text))
		WHERE NOT success`, timeout).Scan(&failed)
	if err != nil || failed > 0 {
		t.Fatalf("set lock_timeout on %d servers: %v", failed, err)
	}
}
