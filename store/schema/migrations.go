package schema

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var embedded embed.FS

// A Migration is one numbered step of the schema. This line is recognized in the comments at the start of its file:
//
//	-- oldest-compatible: NNNN   binaries whose newest migration is NNNN or later run on the schema that it makes
//
// Without it, only binaries that know the migration run on its schema.
type Migration struct {
	Version          int // the number of its file, from 1
	Name             string
	OldestCompatible int
	AppliedAt        time.Time // zero when it is not applied

	sql      string
	checksum []byte // SHA-256 of the file
}

// String returns the name of the migration's file without its extension.
func (m Migration) String() string {
	return fmt.Sprintf("%04d_%s", m.Version, m.Name)
}

// readHeader reads the header line, which is a comment. A compatible version must be older than the migration.
func (m *Migration) readHeader() error {
	m.OldestCompatible = m.Version
	header := true
	for line := range strings.Lines(m.sql) {
		line = strings.TrimSpace(line)
		// header is false from the first line on that is not a comment.
		header = header && strings.HasPrefix(line, "--")
		number, found := strings.CutPrefix(line, "-- oldest-compatible: ")
		if !found {
			continue
		}
		if !header {
			return fmt.Errorf("migration %s: %q must be among the comments at its start", m, line)
		}
		oldest, err := strconv.Atoi(number)
		if err != nil || len(number) != 4 || oldest >= m.Version {
			return fmt.Errorf("migration %s: oldest-compatible must be an older migration than itself", m)
		}
		m.OldestCompatible = oldest
	}
	return nil
}

// migrationFile matches the name of a migration's file: its number and its name.
var migrationFile = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// loadMigrations reads the migrations of a file system in order. All numbers have four digits, so that the names sort
// as the numbers do.
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
		// The names are sorted, so files with one number are neighbours.
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

// statements yields where each statement of a migration begins and ends. They are executed one by one, because Citus
// refuses a change of a distributed table that is sent with another statement.
func statements(sql string) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		begin := 0
		for i := 0; i < len(sql); {
			if sql[i] == ';' {
				if !yield(begin, i+1) {
					return
				}
				begin = i + 1
			}
			// A semicolon inside of a comment or a string ends no statement.
			i += max(1, len(opaque(sql[i:])))
		}
		if strings.TrimSpace(sql[begin:]) != "" {
			yield(begin, len(sql))
		}
	}
}

// opaque returns the comment or string with which sql begins, or "". A quote in a string is written twice, so that it
// ends one string and begins another.
func opaque(sql string) string {
	var begin, end string
	switch {
	case strings.HasPrefix(sql, "--"):
		begin, end = "--", "\n"
	case sql[0] == '\'':
		begin, end = "'", "'"
	default:
		begin = dollarQuote.FindString(sql)
		end = begin
	}
	if begin == "" {
		return ""
	}
	_, rest, _ := strings.Cut(sql[len(begin):], end)
	return sql[:len(sql)-len(rest)]
}

// dollarQuote matches the beginning of a string such as $$…$$ or $body$…$body$, which ends with the same text.
var dollarQuote = regexp.MustCompile(`^\$\w*\$`)
