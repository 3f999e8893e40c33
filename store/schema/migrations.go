package schema

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var embedded embed.FS

// A Migration is one numbered step of the schema. These lines are recognized in the comments at the start of its file:
//
//	-- oldest-compatible: NNNN   binaries whose newest migration is NNNN or later run on the schema that it makes
//	-- no-transaction            run without a transaction, as CREATE INDEX CONCURRENTLY requires
//
// Without the first, only binaries that know the migration run on its schema. With the second, each statement ends with a
// semicolon at the end of a line, and the file can be run again after it failed half-way.
type Migration struct {
	Version          int
	Name             string
	OldestCompatible int
	AppliedAt        time.Time // zero when it is not applied

	sql           string
	checksum      []byte // SHA-256 of the file
	noTransaction bool
}

// String returns the name of the migration's file without its extension.
func (m Migration) String() string {
	return fmt.Sprintf("%04d_%s", m.Version, m.Name)
}

// statements splits a migration that runs without a transaction.
func (m Migration) statements() (statements []string) {
	for s := range strings.SplitSeq(m.sql, ";\n") {
		if strings.TrimSpace(s) != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// readHeader reads the header lines, which are comments. A compatible version must be older than the migration.
func (m *Migration) readHeader() error {
	m.OldestCompatible = m.Version
	header := true
	for line := range strings.Lines(m.sql) {
		line = strings.TrimSpace(line)
		header = header && strings.HasPrefix(line, "--")
		number, compatible := strings.CutPrefix(line, "-- oldest-compatible: ")
		switch {
		case (compatible || line == "-- no-transaction") && !header:
			return fmt.Errorf("migration %s: %q must be among the comments at its start", m, line)
		case compatible:
			oldest, err := strconv.Atoi(number)
			if err != nil || len(number) != 4 || oldest >= m.Version {
				return fmt.Errorf("migration %s: oldest-compatible must be an older migration than itself", m)
			}
			m.OldestCompatible = oldest
		case line == "-- no-transaction":
			m.noTransaction = true
		}
	}
	return nil
}

var migrationFile = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// loadMigrations reads the migrations of a file system in order. All numbers have four digits, so that the names sort as the
// numbers do.
func loadMigrations(files fs.FS) ([]Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, name := range names {
		parts := migrationFile.FindStringSubmatch(path.Base(name))
		if parts == nil {
			return nil, fmt.Errorf("migration %s: its name is not NNNN_name.sql", name)
		}
		version, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		if len(all) > 0 && all[len(all)-1].Version == version {
			return nil, fmt.Errorf("migration %s: its number is used by %s", name, all[len(all)-1])
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		sum := sha256.Sum256(text)
		m := Migration{Version: version, Name: parts[2], sql: string(text), checksum: sum[:]}
		if err := m.readHeader(); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
