package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"aiv/cmd/aiv/capability"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite store/schema.sql with what the migrations make")

const schemaFile = "../../store/schema.sql"

const schemaHeader = `-- The schema as the migrations leave it, in one file, for readers: the tables of each package, the lowest package
-- first, then functions and triggers. "go test ./cmd/aiv -run TestSchemaFile -update" writes it, and keeps the comments
-- on statements and columns, which are written here. Rows that migrations insert are not shown.
`

// TestSchemaFile: schema.sql is what -update makes of the migrated schema and of the comments in the file. A test of
// package schema executes the file.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(schemaFile)
	must(t, err)
	pool := storetest.Plain(t)
	w := &schemaWriter{comments: readComments(string(file))}
	w.WriteString(schemaHeader)
	for _, c := range capability.All {
		for _, table := range c.Tables {
			if table.Name != "schema_migrations" { // which no migration makes
				w.table(t, pool, table.Name)
			}
		}
		for _, s := range c.Sequences {
			w.statement("SEQUENCE "+s.Name, "CREATE SEQUENCE "+s.Name)
		}
	}
	w.functions(t, pool)
	if *update {
		must(t, os.WriteFile(schemaFile, []byte(w.String()), 0o644))
		return
	}
	if diff := cmp.Diff(w.String(), string(file)); diff != "" {
		t.Errorf("schema.sql differs from the migrations; run this test with -update (-migrations +schema.sql):\n%s", diff)
	}
}

var (
	createStatement = regexp.MustCompile(`^CREATE (?:UNIQUE )?(TABLE|INDEX|SEQUENCE|FUNCTION|TRIGGER) (\w+)`)
	columnComment   = regexp.MustCompile(`^  (\w+) .*? +(-- .*)$`)
)

// readComments returns the comments of a schema file: those before a statement by its kind and name, such as TABLE
// plans, and those after a column by the table and the column, such as plans.code. The header of the file is not among
// them.
func readComments(file string) map[string]string {
	comments := make(map[string]string)
	_, file, _ = strings.Cut(file, "\n\n")
	var before []string // the comment lines since the last statement
	table := ""
	for line := range strings.Lines(file) {
		line = strings.TrimRight(line, "\n")
		if m := createStatement.FindStringSubmatch(line); m != nil {
			comments[m[1]+" "+m[2]] = strings.Trim(strings.Join(before, "\n"), "\n")
			table = m[2]
		} else if m := columnComment.FindStringSubmatch(line); m != nil {
			comments[table+"."+m[1]] = m[2]
		}
		if line == "" || strings.HasPrefix(line, "--") {
			before = append(before, line)
		} else {
			before = nil
		}
	}
	return comments
}
