package store

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// LostServer reports whether err is from the coordinator of a Citus cluster that has lost another server. The same
// statement may succeed for accounts on the other servers. A lost connection to the coordinator is an error of another
// type.
func LostServer(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "08") ||
		e.Code == "XX000" && slices.ContainsFunc(lostServer, func(start string) bool { return strings.HasPrefix(e.Message, start) }))
}

// lostServer are the beginnings of the coordinator's messages for a server that is lost during a transaction, or for
// the coordinator itself. Most are of its client library, which has no SQLSTATE, so that Citus reports an internal
// error.
var lostServer = []string{
	"failure on connection marked as essential", "server closed the connection unexpectedly", "SSL SYSCALL error", "SSL error",
	"SSL connection has been closed unexpectedly", "could not receive data from server", "could not send data to server",
	"no connection to the server", "connection not open", "connection to the remote node", "postmaster was shut down",
}

// Error codes of PostgreSQL.
const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
	foreignKey       = "23503"
	uniqueViolation  = "23505"
	undefinedTable   = "42P01"
	undefinedColumn  = "42703"
	notPermitted     = "42501" // insufficient_privilege
)

// withoutCode are errors of another server of a cluster while the coordinator copied rows to it. Citus passes on only
// the message.
var withoutCode = []struct{ start, code string }{
	{"canceling statement due to lock timeout", lockNotAvailable},
	{"deadlock detected", deadlockDetected},
	{"canceling statement due to", "57014"}, // statement_timeout, or the coordinator has ended a deadlock
	{"terminating connection due to", "57P01"},
	{"could not extend file", "53100"},
}

// codeOf returns the code of an error, also of one that Citus has passed on without it.
func codeOf(e *pgconn.PgError) string {
	if e.Code == "XX000" {
		for _, w := range withoutCode {
			if strings.HasPrefix(e.Message, w.start) {
				return w.code
			}
		}
	}
	return e.Code
}

// IsLockTimeout reports whether err is the end of a wait for a lock, after lock_timeout.
func IsLockTimeout(err error) bool { return hasCode(err, lockNotAvailable) }

// IsDeadlock reports whether err ended one of the transactions that waited for each other.
func IsDeadlock(err error) bool { return hasCode(err, deadlockDetected) }

// IsForeignKeyViolation reports whether a statement refers to a row that does not exist.
func IsForeignKeyViolation(err error) bool { return hasCode(err, foreignKey) }

// IsUniqueViolation reports whether a row with the same key exists.
func IsUniqueViolation(err error) bool { return hasCode(err, uniqueViolation) }

// IsUndefinedTable reports whether a statement names a table that does not exist.
func IsUndefinedTable(err error) bool { return hasCode(err, undefinedTable) }

// IsUndefinedColumn reports whether a statement names a column that does not exist.
func IsUndefinedColumn(err error) bool { return hasCode(err, undefinedColumn) }

// IsNotPermitted reports whether the session's role lacks a privilege.
func IsNotPermitted(err error) bool { return hasCode(err, notPermitted) }

// hasCode reports whether err is an error of PostgreSQL with a code.
func hasCode(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && codeOf(e) == code
}

// ErrContended means that a transaction was rolled back each time it was tried, because of other transactions.
var ErrContended = errors.New("other transactions kept this one from its rows")

// IsUnavailable reports whether err means that the database is down or overloaded, so that a retry may succeed.
func IsUnavailable(err error) bool {
	if errors.Is(err, ErrContended) {
		return true
	}
	// No statement was executed, whatever the reason: also a login that is refused, for which there is a PgError too.
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		code := codeOf(e)
		switch {
		case strings.HasPrefix(code, "08"), // connection exceptions
			strings.HasPrefix(code, "53"), // insufficient resources: connections, disk, memory
			strings.HasPrefix(code, "57"), // operator intervention: shutdown, cancel, statement_timeout
			strings.HasPrefix(code, "58"), // system errors: I/O
			code == lockNotAvailable, code == deadlockDetected,
			code == "25006", // read-only: a standby, or a primary that has just been demoted
			code == "25P03", // idle_in_transaction_session_timeout: this process was stopped for a while
			code == "40001": // serialization failure
			return true
		}
		return LostServer(err)
	}
	if e, ok := errors.AsType[net.Error](err); ok {
		// Alone, a syscall.Errno is of a file: in errors of connections it is part of a *net.OpError.
		if _, ofFile := e.(syscall.Errno); !ofFile {
			return true
		}
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// ConcernsOnePart reports whether a task of many steps can continue after one of them failed with err: the database is
// available, or err is only a lock timeout, a deadlock or a lost server of a cluster.
func ConcernsOnePart(err error) bool { return !IsUnavailable(err) || MayConcernOneRow(err) }

// IsUncertain reports whether the connection was lost while a statement was executed: it is not known whether a
// transaction was committed.
func IsUncertain(err error) bool {
	_, rejected := errors.AsType[*pgconn.PgError](err)
	_, notConnected := errors.AsType[*pgconn.ConnectError](err)
	return err != nil && !rejected && !notConnected && IsUnavailable(err) && !errors.Is(err, ErrContended) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// MayConcernOneRow reports whether err may be due to a part of a batch: PostgreSQL rejected a value, waited for a lock,
// or ended one of several transactions that waited for each other, or Citus lost the server of an account. Only the
// last leaves open whether the batch took effect.
func MayConcernOneRow(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!IsUnavailable(err) || IsLockTimeout(err) || IsDeadlock(err) || LostServer(err))
}
