package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ReadSources reads the folders of the module at root, so that go test runs a test that builds a program again after
// any change of the module, instead of returning a cached result. It has no effect in TestMain: go test records what is
// read while the tests run.
func ReadSources(root string) error {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed during the walk
		case err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		return err
	})
}

// MigrateAsThen is aiv migrate of a release that had these files of migrations.
func MigrateAsThen(t testing.TB, databaseURL string, files []string) {
	t.Helper()
	exec := func(sql string) { Must(t, execSQL(t.Context(), databaseURL, sql)) }
	exec(`CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(), oldest_compatible int)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		Must(t, err)
		version, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".sql"), "_")
		exec(string(text))
		exec(fmt.Sprintf(`INSERT INTO schema_migrations VALUES ('%s', '%s', '\x%x')`, version, name, sha256.Sum256(text)))
	}
}
