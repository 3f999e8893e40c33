package store_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TestKindsOfErrors: an error of a database that is unavailable may pass. The inputs of a batch are retried one by one
// after an error that one of them may have caused.
func TestKindsOfErrors(t *testing.T) {
	// Errors of PostgreSQL by their codes, and those that Citus passes on by their messages.
	pg := func(codes ...string) (errs []error) {
		for _, code := range codes {
			errs = append(errs, &pgconn.PgError{Code: code})
		}
		return errs
	}
	internal := func(message string) error { return &pgconn.PgError{Code: "XX000", Message: message} }
	for _, test := range []struct {
		unavailable, mayConcernOneRow bool
		errs                          []error
	}{
		// Too many connections, disk full, shutdown, starting up, statement_timeout, I/O error, a standby,
		// idle_in_transaction_session_timeout, serialization failure.
		{true, false, append(pg("53300", "53100", "57P01", "57P03", "57014", "58030", "25006", "25P03", "40001"),
			context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
			&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ECONNRESET)})},
		// A lost server of a cluster, lock_timeout, deadlock.
		{true, true, append(pg("08006", "55P03", "40P01"), internal("failure on connection marked as essential: 192.0.2.1:5432"),
			internal("SSL SYSCALL error: EOF detected"), internal("canceling statement due to lock timeout"))},
		// Violations of a key, number out of range, no such table, no privilege.
		{false, true, append(pg("23505", "23503", "22003", "42P01", "42501"),
			internal(`new row for relation "r_102010" violates check constraint "c"`))},
		{false, false, []error{
			batch.ErrOverloaded, // has another problem code
			pgx.ErrNoRows, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}}},
	} {
		for _, err := range test.errs {
			for _, err := range []error{err, fmt.Errorf("looking up: %w", err)} {
				equal(t, test.unavailable, store.IsUnavailable(err), "unavailable: ", err)
				equal(t, test.mayConcernOneRow, store.MayConcernOneRow(err), "may concern one row: ", err)
			}
		}
	}
}

// TestErrorsOfConnections has the errors from where they arise.
func TestErrorsOfConnections(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	closed := open(t, url)
	closed.Close()
	for name, ask := range map[string]func(ctx context.Context) error{
		"no listener":     open(t, "postgres:///aiv?host="+t.TempDir()).Ping,
		"a refused login": open(t, url+"&user=nobody").Ping,
		"a closed pool":   closed.Ping,
		"an ended session": func(ctx context.Context) error {
			_, err := open(t, url).Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		},
		"a closed connection": func(ctx context.Context) error {
			return open(t, url).AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
				conn.Conn().Close(ctx)
				return conn.Ping(ctx)
			})
		},
	} {
		if err := ask(t.Context()); !store.IsUnavailable(err) || store.MayConcernOneRow(err) {
			t.Errorf("%s: %v does not pass for unavailable, or passes for an error of one row", name, err)
		}
	}
}
