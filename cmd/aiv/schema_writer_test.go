package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A schemaWriter writes statements with the comments that they have.
type schemaWriter struct {
	strings.Builder
	comments map[string]string
	last     string // the kind of the last statement
}

// statement writes a statement after its comment. Indexes and triggers without comments that follow others are not set
// apart.
func (w *schemaWriter) statement(name, sql string) {
	kind, _, _ := strings.Cut(name, " ")
	comment, follows := w.comments[name], w.last == kind && (kind == "INDEX" || kind == "TRIGGER")
	w.last = kind
	if comment != "" {
		fmt.Fprintf(w, "\n%s\n", comment)
	} else if !follows {
		w.WriteString("\n")
	}
	fmt.Fprintf(w, "%s;\n", sql)
}

func (w *schemaWriter) table(t *testing.T, pool *pgxpool.Pool, table string) {
	t.Helper()
	type column struct{ Name, Type, Definition, Compression string }
	columns := collect[column](t, pool, selectColumns, table)
	constraints := collect[constraint](t, pool, selectConstraints, table)
	var lines, comments []string
	nameWidth, typeWidth := 0, 0
	for _, c := range columns {
		nameWidth, typeWidth = max(nameWidth, len(c.Name)), max(typeWidth, len(c.Type))
	}
	compressed := ""
	for _, c := range columns {
		line := fmt.Sprintf("%-*s %s", nameWidth, c.Name, c.Type)
		for _, part := range append([]string{c.Definition}, inlineOf(constraints, table, c.Name)...) {
			if part != "" {
				line += " " + part
			}
		}
		lines, comments = append(lines, readable(line)), append(comments, w.comments[table+"."+c.Name])
		if c.Compression == "l" {
			compressed += fmt.Sprintf(compressLZ4, table, c.Name)
		}
	}
	for _, c := range constraints {
		if !c.inline(table) {
			lines, comments = append(lines, readable(c.Definition)), append(comments, "")
		}
	}
	sql := "CREATE TABLE " + table + " (\n"
	for i, line := range lines {
		if i < len(lines)-1 {
			line += ","
		}
		if comments[i] != "" {
			line += " " + comments[i]
		}
		sql += "  " + line + "\n"
	}
	var options string
	err := pool.QueryRow(t.Context(), `
SELECT COALESCE(array_to_string(reloptions, ', '), '') FROM pg_class WHERE oid = $1::text::regclass`, table).Scan(&options)
	must(t, err)
	sql += ")"
	if options != "" {
		sql += " WITH (" + strings.ReplaceAll(options, "=", " = ") + ")"
	}
	w.statement("TABLE "+table, sql)
	w.WriteString(compressed)
	type index struct{ Name, SQL string }
	for _, i := range collect[index](t, pool, selectIndexes, table) {
		w.statement("INDEX "+i.Name, readable(i.SQL))
	}
}

func (w *schemaWriter) functions(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	type function struct {
		Name, SQL string
		Public    bool
	}
	for _, f := range collect[function](t, pool, selectFunctions) {
		sql := strings.Replace(f.SQL, "CREATE OR REPLACE FUNCTION public.", "CREATE FUNCTION ", 1)
		sql = regexp.MustCompile(`SET search_path TO .*`).ReplaceAllString(sql, "SET search_path FROM CURRENT")
		sql = regexp.MustCompile(`\$(function|procedure)\$`).ReplaceAllString(sql, "$$$$")
		w.statement("FUNCTION "+f.Name, strings.TrimSpace(sql))
		if !f.Public {
			fmt.Fprintf(w, "\nREVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;\n", f.Name)
		}
	}
	type trigger struct {
		Name, Table, SQL string
		Always           bool
	}
	for _, tr := range collect[trigger](t, pool, selectTriggers) {
		w.statement("TRIGGER "+tr.Name, readable(tr.SQL))
		if tr.Always {
			fmt.Fprintf(w, "ALTER TABLE %s ENABLE ALWAYS TRIGGER %s;\n", tr.Table, tr.Name)
		}
	}
}

// A constraint is one of a table. Column is its column if it has only one.
type constraint struct{ Name, Column, Definition string }

// inline reports whether the definition of the column can have the constraint: it has the name that PostgreSQL gives it
// there.
func (c constraint) inline(table string) bool {
	switch c.Name {
	case table + "_pkey":
		return c.Column != "" && !strings.Contains(c.Definition, " WITH ")
	case table + "_" + c.Column + "_check", table + "_" + c.Column + "_key", table + "_" + c.Column + "_fkey":
		return c.Column != ""
	}
	return false
}

// inlineOf returns the constraints in the definition of a column.
func inlineOf(constraints []constraint, table, column string) (parts []string) {
	of := regexp.MustCompile(`^(PRIMARY KEY|UNIQUE|FOREIGN KEY) \(\w+\) ?`)
	for _, c := range constraints {
		if c.Column == column && c.inline(table) {
			parts = append(parts, of.ReplaceAllStringFunc(c.Definition, func(kind string) string {
				return map[byte]string{'P': "PRIMARY KEY", 'U': "UNIQUE", 'F': ""}[kind[0]]
			}))
		}
	}
	return parts
}

var rewrites = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`('(?:[^']|'')*')::text\b(?:\[\])?`), "$1"},
	{regexp.MustCompile(`\(\((\w+)\)::text\b`), "($1"},
	{regexp.MustCompile(`<> ALL \(ARRAY\[([^]]*)\]\)`), "NOT IN ($1)"},
	{regexp.MustCompile(`= ANY \(ARRAY\[([^]]*)\]\)`), "IN ($1)"},
	{regexp.MustCompile(`(\w+) >= (\d+) AND (\w+) <= (\d+)`), "$1 BETWEEN $2 AND $4"},
	{regexp.MustCompile(`timestamp with time zone`), "timestamptz"},
	{regexp.MustCompile(`\bpublic\.| USING btree`), ""},
}

// readable returns SQL of PostgreSQL in the form in which it would be written.
func readable(sql string) string {
	for _, r := range rewrites {
		sql = r.from.ReplaceAllString(sql, r.to)
	}
	return sql
}

func collect[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	must(t, err)
	return all
}

const (
	selectColumns = `
SELECT attname::text, replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz'),
  concat_ws(' ', CASE WHEN attcollation <> typcollation THEN format('COLLATE "%s"', collname) END,
    CASE WHEN attnotnull AND NOT EXISTS (
        SELECT FROM pg_constraint WHERE conrelid = attrelid AND contype = 'p' AND conkey = ARRAY[attnum])
      THEN 'NOT NULL' END,
    CASE WHEN attgenerated = 's' THEN format('GENERATED ALWAYS AS (%s) STORED', pg_get_expr(adbin, adrelid))
      WHEN attidentity = 'a' THEN 'GENERATED ALWAYS AS IDENTITY'
      WHEN adbin IS NOT NULL THEN 'DEFAULT ' || pg_get_expr(adbin, adrelid) END),
  attcompression::text
FROM pg_attribute JOIN pg_type ty ON ty.oid = atttypid
LEFT JOIN pg_collation co ON co.oid = attcollation
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`

	// The options of an index are not in the definition of its constraint.
	selectConstraints = `
SELECT conname::text,
  CASE WHEN cardinality(conkey) = 1 THEN (
    SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) ELSE '' END,
  pg_get_constraintdef(c.oid, true)
    || COALESCE(' WITH (' || replace(array_to_string(i.reloptions, ', '), '=', ' = ') || ')', '')
FROM pg_constraint c LEFT JOIN pg_class i ON i.oid = conindid AND contype IN ('p', 'u')
WHERE conrelid = $1::text::regclass AND contype IN ('c', 'f', 'p', 'u')
ORDER BY array_position('{p,u,f,c}', contype::text), c.oid`

	selectIndexes = `
SELECT i.relname::text, pg_get_indexdef(i.oid, 0, true) FROM pg_index x JOIN pg_class i ON i.oid = indexrelid
WHERE indrelid = $1::text::regclass
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.oid AND contype IN ('p', 'u')) ORDER BY i.oid`

	selectFunctions = `
SELECT proname::text, pg_get_functiondef(p.oid), has_function_privilege('public', p.oid, 'EXECUTE') FROM pg_proc p
WHERE pronamespace = 'public'::regnamespace ORDER BY proname`

	selectTriggers = `
SELECT tgname::text, tgrelid::regclass::text, pg_get_triggerdef(oid, true), tgenabled = 'A' FROM pg_trigger
WHERE NOT tgisinternal ORDER BY oid`

	compressLZ4 = `
-- LZ4 takes a fraction of the time of the default. A server that was built without it keeps the default.
DO $$ BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE %s ALTER COLUMN %s SET COMPRESSION lz4;
  END IF;
END $$;
`
)
