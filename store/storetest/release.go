package storetest

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// MigrateAsThen is aiv migrate of a release that had these files of migrations.
func MigrateAsThen(t testing.TB, databaseURL string, files []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	Must(t, err)
	defer conn.Close(t.Context())
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		Must(t, err)
	}
	exec(`CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(), oldest_compatible int)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		Must(t, err)
		version, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".sql"), "_")
		exec(string(text))
		sum := sha256.Sum256(text)
		exec(`INSERT INTO schema_migrations (version, name, checksum) VALUES ($1::text::int, $2, $3)`, version, name, sum[:])
	}
}
