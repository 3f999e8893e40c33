package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

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
	// An error of PostgreSQL by its code, or one that Citus passes on by its message.
	code := func(code string) error { return &pgconn.PgError{Code: code} }
	internal := func(message string) error { return &pgconn.PgError{Code: "XX000", Message: message} }
	for _, test := range []struct {
		unavailable, mayConcernOneRow bool
		errs                          []error
	}{
		{true, false, []error{
			code("53300"), // too many connections
			code("53100"), // disk full
			code("57P01"), // shutdown
			code("57P03"), // starting up
			code("57014"), // statement_timeout
			code("58030"), // I/O error
			code("25006"), // a standby
			code("25P03"), // idle_in_transaction_session_timeout
			code("40001"), // serialization failure
			context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
			&net.OpError{Op: "dial", Err: errors.New("refused")},
			&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ECONNRESET)},
		}},
		{true, true, []error{
			code("08006"), // a lost server of a cluster
			internal("failure on connection marked as essential: 192.0.2.1:5432"),
			internal("SSL SYSCALL error: EOF detected"),
			internal("canceling statement due to lock timeout"),
			code("55P03"), // lock_timeout
			code("40P01"), // deadlock
		}},
		{false, true, []error{
			code("23505"), // unique violation
			code("23503"), // foreign key violation
			code("22003"), // number out of range
			code("42P01"), // no such table
			code("42501"), // no privilege
			code("55000"),
			internal(""),
			internal(`new row for relation "r_102010" violates check constraint "c"`),
		}},
		{false, false, []error{
			batch.ErrOverloaded, // has another problem code
			pgx.ErrNoRows,
			errors.New("out of ideas"),
			&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC},
		}},
	} {
		for _, err := range test.errs {
			for _, err := range []error{err, fmt.Errorf("looking up: %w", err)} {
				equal(t, test.unavailable, store.IsUnavailable(err), "unavailable: ", err)
				equal(t, test.mayConcernOneRow, store.MayConcernOneRow(err), "may concern one row: ", err)
			}
		}
	}
}

// TestIsUnavailableInLife has the errors from where they arise.
func TestIsUnavailableInLife(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	acquire := func(pool *pgxpool.Pool) *pgxpool.Conn {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		t.Cleanup(conn.Release)
		return conn
	}
	for name, ask := range map[string]func(ctx context.Context) error{
		"no listener":                    open(t, "postgres:///aiv?host="+t.TempDir()).Ping,
		"no server of the required kind": open(t, url+"&target_session_attrs=standby").Ping,
		"a refused login":                open(t, url+"&user=nobody").Ping,
		"no such database":               open(t, url+"&dbname=none").Ping,
		"a closed pool": func(ctx context.Context) error {
			pool := open(t, url)
			pool.Close()
			return pool.Ping(ctx)
		},
		"an ended session": func(ctx context.Context) error {
			_, err := acquire(open(t, url)).Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		},
		"a closed connection": func(ctx context.Context) error {
			conn := acquire(open(t, url))
			conn.Conn().Close(ctx)
			return conn.Ping(ctx)
		},
		"no connection left": func(ctx context.Context) error {
			pool := open(t, url)
			for range pool.Config().MaxConns {
				acquire(pool)
			}
			soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			return pool.Ping(soon)
		},
	} {
		if err := ask(t.Context()); err == nil || !store.IsUnavailable(err) {
			t.Errorf("%s: %v does not pass for unavailable", name, err)
		}
		if err := ask(t.Context()); store.MayConcernOneRow(err) {
			t.Errorf("%s: %v passes for an error of one row", name, err)
		}
	}
}
