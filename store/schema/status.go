package schema

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status compares the migrations of this binary with the migrations of a database. Each list is in the order of the
// numbers.
type Status struct {
	Applied []Migration // in both, the same
	Changed []Migration // in both, but another file was applied
	Pending []Migration // in the binary only
	Newer   []Migration // in the database only, and compatible with this binary
	Unknown []Migration // in the database only, and not compatible with this binary
}

// ReadStatus reads the status of a database and changes nothing. It returns a [*ChangedError] for a database of release
// 0.1.0.
func ReadStatus(ctx context.Context, pool *pgxpool.Pool) (Status, error) {
	all, err := loadMigrations(embedded)
	if err != nil {
		return Status{}, err
	}
	return readStatus(ctx, pool, all)
}

// Err returns nil when the binary can run on the database. Otherwise it returns the first that applies of
// [*NewerError], [*ChangedError] and [*PendingError].
func (s Status) Err() error {
	switch {
	case len(s.Unknown) > 0:
		return &NewerError{Unknown: s.Unknown}
	case len(s.Changed) > 0:
		return &ChangedError{Changed: s.Changed}
	case len(s.Pending) > 0:
		return &PendingError{Pending: s.Pending}
	}
	return nil
}

// A PendingError reports that the database lacks migrations of this binary.
type PendingError struct{ Pending []Migration }

func (e *PendingError) Error() string {
	return fmt.Sprintf("the database lacks %s; run `aiv migrate`", list(e.Pending))
}

// A NewerError reports migrations that this binary does not know and that do not declare it compatible.
type NewerError struct{ Unknown []Migration }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the database is newer than this binary: it has %s; use the newer binary", list(e.Unknown))
}

// A ChangedError reports migrations whose files differ from those that were applied. Changed is empty if the table of
// the migrations has the columns of release 0.1.0, of which nothing else is read.
type ChangedError struct{ Changed []Migration }

func (e *ChangedError) Error() string {
	if len(e.Changed) == 0 {
		return "the table schema_migrations has other columns: the database was made by aiv 0.1.0 or earlier, whose data cannot be upgraded, " +
			"or by another program; use another database"
	}
	return fmt.Sprintf("the database has another version of %s; use the binary that applied it", list(e.Changed))
}

// list names migrations for a message.
func list(migrations []Migration) string {
	var names []string
	for _, m := range migrations {
		names = append(names, m.String())
	}
	if len(names) == 1 {
		return "migration " + names[0]
	}
	return fmt.Sprintf("%d migrations (%s)", len(names), strings.Join(names, ", "))
}

// readStatus compares all, the migrations of the binary, with the database.
func readStatus(ctx context.Context, db store.Querier, all []Migration) (Status, error) {
	applied, err := readApplied(ctx, db)
	if store.IsUndefinedColumn(err) {
		return Status{}, &ChangedError{}
	}
	if err != nil {
		return Status{}, fmt.Errorf("read the applied migrations: %w", err)
	}
	return compare(all, applied), nil
}

// compare returns the status of a database with these applied migrations.
func compare(all, applied []Migration) Status {
	var s Status
	for _, m := range all {
		// The binary does not know this migration, although it knows a later one.
		for len(applied) > 0 && applied[0].Version < m.Version {
			s.Unknown = append(s.Unknown, applied[0])
			applied = applied[1:]
		}
		if len(applied) == 0 || applied[0].Version > m.Version {
			s.Pending = append(s.Pending, m)
			continue
		}
		m.AppliedAt = applied[0].AppliedAt
		if bytes.Equal(m.checksum, applied[0].checksum) {
			s.Applied = append(s.Applied, m)
		} else {
			s.Changed = append(s.Changed, m)
		}
		applied = applied[1:]
	}
	// What remains is newer than this binary. It can be used only if nothing older is missing.
	for _, m := range applied {
		if len(all) > 0 && len(s.Pending) == 0 && m.OldestCompatible <= all[len(all)-1].Version {
			s.Newer = append(s.Newer, m)
		} else {
			s.Unknown = append(s.Unknown, m)
		}
	}
	return s
}

// readApplied treats a database without schema_migrations as one without migrations, so that reading the status does
// not require the privilege to create the table.
func readApplied(ctx context.Context, db store.Querier) ([]Migration, error) {
	applied, err := store.Collect(ctx, db, func(row pgx.CollectableRow) (m Migration, err error) {
		err = row.Scan(m.columns()...)
		m.AppliedAt = m.AppliedAt.UTC()
		return m, err
	}, selectSchemaMigrations, pgx.QueryExecModeExec)
	if store.IsUndefinedTable(err) {
		return nil, nil
	}
	return applied, err
}

// columns are the destinations of migrationColumns.
func (m *Migration) columns() []any {
	return []any{&m.Version, &m.Name, &m.checksum, &m.AppliedAt, &m.OldestCompatible}
}

// migrationColumns are the columns of a Migration that the database has. Without oldest_compatible, only binaries that
// know the migration run on its schema.
const migrationColumns = `version, name, checksum, applied_at, COALESCE(oldest_compatible, version)`

const selectSchemaMigrations = `SELECT ` + migrationColumns + ` FROM schema_migrations ORDER BY version`
