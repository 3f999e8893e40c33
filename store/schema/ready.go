package schema

import (
	"context"
	"fmt"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ready returns why a service cannot work with the sessions of a pool: the first that applies of [*ReadOnlyError],
// [*PrivilegeError] and the errors of [Status.Err]. If it can, one short statement finds that out, because monitoring
// asks often.
func Ready(ctx context.Context, pool *pgxpool.Pool, capabilities []Capability, service Service) error {
	all, err := loadMigrations(embedded)
	if err != nil {
		return err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	defer conn.Release()
	needed := privilegeArgs(service.grants(capabilities, store.IsCitus(conn.Conn())), "")
	// Each row of selectReady repeats the columns of the session, so s has them after any row.
	var s session
	applied, err := store.Collect(ctx, conn, func(row pgx.CollectableRow) (m Migration, err error) {
		err = row.Scan(append(m.columns(), s.columns()...)...)
		return m, err
	}, selectReady, needed...)
	// Without migrations, or the privilege to read them, there is no row.
	if len(applied) == 0 && (err == nil || store.IsNotPermitted(err) || store.IsUndefinedTable(err)) {
		err = conn.QueryRow(ctx, selectSession, needed...).Scan(s.columns()...)
	}
	switch {
	// The table schema_migrations has other columns; see ChangedError.
	case store.IsUndefinedColumn(err):
		return &ChangedError{}
	case err != nil:
		return fmt.Errorf("check the database: %w", err)
	case s.readOnly:
		return &ReadOnlyError{Standby: s.standby}
	case len(s.missing) > 0:
		return newPrivilegeError(ctx, conn, capabilities, s.role, service, s.missing)
	}
	return compare(all, applied).Err()
}

// Writable returns a [*ReadOnlyError] if the sessions of a pool cannot write.
func Writable(ctx context.Context, pool *pgxpool.Pool) error {
	var s session
	if err := pool.QueryRow(ctx, selectSession, privilegeArgs(nil, "")...).Scan(s.columns()...); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if s.readOnly {
		return &ReadOnlyError{Standby: s.standby}
	}
	return nil
}

// checkWritable returns a [*ReadOnlyError] if a session cannot write, by what the server reported when it began.
func checkWritable(conn *pgx.Conn) error {
	standby := conn.PgConn().ParameterStatus("in_hot_standby") == "on"
	if standby || conn.PgConn().ParameterStatus("default_transaction_read_only") == "on" {
		return &ReadOnlyError{Standby: standby}
	}
	return nil
}

// A ReadOnlyError reports a database to which nothing can be written.
type ReadOnlyError struct {
	Standby bool // else by default_transaction_read_only
}

func (e *ReadOnlyError) Error() string {
	if e.Standby {
		return "the database server is a standby, which is read-only; name the primary, or all servers with target_session_attrs=read-write"
	}
	return "the database is read-only, because default_transaction_read_only is on; turn it off for the role, the database or the server"
}

// session is what Ready reads besides the migrations.
type session struct {
	standby, readOnly bool
	role              string
	missing           []string // privileges
}

// columns are the destinations of sessionColumns.
func (s *session) columns() []any { return []any{&s.standby, &s.readOnly, &s.role, &s.missing} }

// sessionColumns are what Ready asks about the session; they have the parameters of missingPrivileges.
const sessionColumns = `pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', current_user, ` + missingPrivileges

const selectSession = `SELECT ` + sessionColumns

// selectReady returns a row for each applied migration, with the columns of the session, in one round trip.
const selectReady = `SELECT ` + migrationColumns + `, ` + sessionColumns + ` FROM schema_migrations ORDER BY version`
