package store

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"time"
)

//go:embed migrations/*.sql
var embedded embed.FS

// A Migration is one numbered step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero when it is not applied

	sql      string
	checksum []byte // SHA-256 of the file
}

// String is the name of the migration's file, without its extension.
func (m Migration) String() string {
	return fmt.Sprintf("%04d_%s", m.Version, m.Name)
}

var migrationFile = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// loadMigrations reads the migrations of a file system in their order. All
// numbers have four digits, so the order of the names is that of the numbers.
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
			return nil, fmt.Errorf("migration %s: its number is taken by %s", name, all[len(all)-1])
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		sum := sha256.Sum256(text)
		all = append(all, Migration{Version: version, Name: parts[2], sql: string(text), checksum: sum[:]})
	}
	return all, nil
}
