package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/schema"
)

// TestStatementsEndAtSemicolons: semicolons in comments and strings end no statement, and no character is lost.
func TestStatementsEndAtSemicolons(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		nil,
		{"SELECT 1;"},
		{"SELECT 1;", "\nSELECT 2"},
		{"-- a; b\nSELECT 1;", " -- c; d\n\nSELECT 2;"},
		{"SELECT ';', 'it''s;', '--';", "SELECT '"},
		{"DO $$ BEGIN; END $$;", "CREATE FUNCTION f() AS $f$ SELECT $$;$$; $f$;", "SELECT $1;"},
	} {
		equal(t, want, schema.Statements(strings.Join(want, "")), "statements")
	}
}

// TestEachFormReplacesOneStatement: each form for distributed databases is that of one statement of the migrations, and
// the statements of a file are the file.
func TestEachFormReplacesOneStatement(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		all := schema.Statements(string(text))
		if rest, ok := strings.CutPrefix(string(text), strings.Join(all, "")); !ok || strings.TrimSpace(rest) != "" {
			t.Errorf("%s has more than its statements: %q", file, rest)
		}
		for _, sql := range all {
			if schema.HasDistributedForm(sql) {
				found++
			}
		}
	}
	equal(t, schema.DistributedForms, found, "statements that have another form")
}
