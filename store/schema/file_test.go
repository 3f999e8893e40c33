package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestSchemaFile compares schema.sql with what the migrations make, also after Distribute, which changes nothing without
// Citus.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../schema.sql")
	must(t, err)
	pool, migrated := open(t, storetest.Empty(t)), storetest.Plain(t)
	storetest.Exec(t, pool, string(file))
	if _, err := schema.Distribute(t.Context(), migrated, capabilities); !errors.Is(err, schema.ErrNoCitus) {
		t.Errorf("Distribute: got error %v, want ErrNoCitus", err)
	}
	equal(t, dump(t, migrated), dump(t, pool), "schema.sql differs from the migrations")
}

var perDump, ofName = regexp.MustCompile(`(?m)^\\.*\n`), regexp.MustCompile(`CONSTRAINT \S+ (NOT NULL)`)

// dump returns the schema of a database as pg_dump writes it, without a key that differs in each dump, and without names
// of NOT NULL constraints, which PostgreSQL 18 has and a renamed table keeps.
func dump(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	url, _, _ := strings.Cut(pool.Config().ConnString(), "&lock_timeout=") // which pg_dump does not take
	cmd, err := storetest.Command("pg_dump", "--schema-only", "--exclude-table=schema_migrations", "-d", url)
	must(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	must(t, cmd.Run())
	return ofName.ReplaceAllString(perDump.ReplaceAllString(out.String(), ""), "$1")
}

// TestStatements: semicolons in comments and strings end no statement, and the statements of a migration are the file.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"-- a; b\nSELECT 1;", " -- c; d\n\nSELECT 2"},
		{"SELECT ';', 'it''s;', '--';", "SELECT '"},
		{"DO $$ BEGIN; END $$;", "CREATE FUNCTION f() AS $f$ SELECT $$;$$; $f$;", "SELECT $1;"},
	} {
		equal(t, want, schema.Statements(strings.Join(want, "")), "statements")
	}
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		all := schema.Statements(string(text))
		if rest, ok := strings.CutPrefix(string(text), strings.Join(all, "")); !ok || strings.TrimSpace(rest) != "" {
			t.Errorf("%s has more than its statements: %q", file, rest)
		}
	}
}
