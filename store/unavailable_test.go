package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestIsUnavailable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "08006"}, true},
		{&pgconn.PgError{Code: "XX000", Message: "failure on connection marked as essential: 192.0.2.1:5432"}, true},
		{&pgconn.PgError{Code: "XX000", Message: "SSL SYSCALL error: EOF detected"}, true},
		{&pgconn.PgError{Code: "XX000", Message: "canceling statement due to lock timeout"}, true},
		{&pgconn.PgError{Code: "XX000", Message: `new row for relation "r_102010" violates check constraint "c"`}, false},
		{&pgconn.PgError{Code: "53300"}, true},  // too many connections
		{&pgconn.PgError{Code: "53100"}, true},  // disk full
		{&pgconn.PgError{Code: "57P01"}, true},  // shutdown
		{&pgconn.PgError{Code: "57P03"}, true},  // starting up
		{&pgconn.PgError{Code: "57014"}, true},  // statement_timeout
		{&pgconn.PgError{Code: "58030"}, true},  // I/O error
		{&pgconn.PgError{Code: "55P03"}, true},  // lock_timeout
		{&pgconn.PgError{Code: "25006"}, true},  // a standby
		{&pgconn.PgError{Code: "25P03"}, true},  // idle_in_transaction_session_timeout
		{&pgconn.PgError{Code: "40001"}, true},  // serialization failure
		{&pgconn.PgError{Code: "40P01"}, true},  // deadlock
		{&pgconn.PgError{Code: "23505"}, false}, // unique violation
		{&pgconn.PgError{Code: "23503"}, false}, // foreign key violation
		{&pgconn.PgError{Code: "42P01"}, false}, // no such table
		{&pgconn.PgError{Code: "42501"}, false}, // no privilege
		{&pgconn.PgError{Code: "55000"}, false},
		{&pgconn.PgError{Code: "XX000"}, false},
		{context.DeadlineExceeded, true},
		{context.Canceled, true},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{net.ErrClosed, true},
		{os.ErrDeadlineExceeded, true},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		{batch.ErrOverloaded, false}, // has another problem code
		{pgx.ErrNoRows, false},
		{errors.New("out of ideas"), false},
	} {
		if got := store.IsUnavailable(test.err); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
		if got := store.IsUnavailable(fmt.Errorf("looking up: %w", test.err)); got != test.want {
			t.Errorf("wrapped %v: got %v, want %v", test.err, got, test.want)
		}
	}
}

// TestMayConcernOneRow: the inputs of a batch are retried one by one after an error that one of them may have caused.
func TestMayConcernOneRow(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "23505"}, true}, // unique violation
		{&pgconn.PgError{Code: "22003"}, true}, // number out of range
		{&pgconn.PgError{Code: "55P03"}, true}, // lock_timeout
		{&pgconn.PgError{Code: "40P01"}, true}, // deadlock
		{&pgconn.PgError{Code: "08006"}, true}, // a lost server of a cluster
		{&pgconn.PgError{Code: "57014"}, false},
		{&pgconn.PgError{Code: "57P01"}, false},
		{&pgconn.PgError{Code: "53100"}, false},
		{&pgconn.PgError{Code: "25006"}, false},
		{io.ErrUnexpectedEOF, false},
		{context.DeadlineExceeded, false},
		{errors.New("out of ideas"), false},
	} {
		if got := store.MayConcernOneRow(fmt.Errorf("counting: %w", test.err)); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}

// TestIsUnavailableInLife has the errors from where they arise.
func TestIsUnavailableInLife(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for _, test := range []struct {
		name string
		ask  func(ctx context.Context) error
	}{
		{"no listener", func(ctx context.Context) error {
			pool, err := store.Open(ctx, "postgres:///aiv?host="+t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			return pool.Ping(ctx)
		}},
		{"no server of the required kind", func(ctx context.Context) error {
			pool, err := store.Open(ctx, url+"&target_session_attrs=standby", 1)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			return pool.Ping(ctx)
		}},
		{"a closed pool", func(ctx context.Context) error {
			pool, err := store.Open(ctx, url, 1)
			if err != nil {
				t.Fatal(err)
			}
			pool.Close()
			return pool.Ping(ctx)
		}},
		{"an ended session", func(ctx context.Context) error {
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(ctx)
			_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		}},
		{"a closed connection", func(ctx context.Context) error {
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close(ctx)
			_, err = conn.Exec(ctx, `SELECT`)
			return err
		}},
		{"no connection left", func(ctx context.Context) error {
			pool, err := store.Open(ctx, url, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			conn, err := pool.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			return pool.Ping(soon)
		}},
	} {
		if err := test.ask(t.Context()); err == nil || !store.IsUnavailable(err) {
			t.Errorf("%s: %v does not pass for unavailable", test.name, err)
		}
	}
}
