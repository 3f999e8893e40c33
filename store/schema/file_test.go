package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"
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
	want := column[string](t, migrated, describeSchema)
	if len(want) < 100 {
		t.Fatalf("the migrations make only %d objects", len(want))
	}
	equal(t, want, column[string](t, pool, describeSchema), "schema.sql differs from the migrations")
}

// TestStatements: semicolons in comments and strings end no statement, and the statements of a migration are the file.
// Each form for distributed databases is that of one of them.
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

// describeSchema selects one line for each column, constraint, index, sequence, trigger and function of the schema.
const describeSchema = `
SELECT line FROM (
  SELECT format('table %s %s column %s %s %s %s %s %s %s', c.relname, c.reloptions, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attnotnull THEN 'not null' END, a.attcompression, a.attidentity::text || a.attgenerated::text || COALESCE(l.collname::text, ''), pg_get_expr(d.adbin, d.adrelid)) AS line
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname <> 'schema_migrations'
  UNION ALL
  SELECT format('constraint %s on %s: %s', conname, conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace AND conrelid <> COALESCE(to_regclass('schema_migrations'), 0) AND contype <> 'n'
  UNION ALL
  SELECT format('index %s %s', pg_get_indexdef(i.indexrelid), c.reloptions) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE c.relnamespace = 'public'::regnamespace AND i.indrelid <> COALESCE(to_regclass('schema_migrations'), 0)
  UNION ALL
  SELECT format('sequence %s', relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
  UNION ALL
  SELECT format('trigger %s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL
  SELECT format('function %s %s', pg_get_functiondef(oid), proacl) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
) described ORDER BY line COLLATE "C"`
