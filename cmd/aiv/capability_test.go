package main

import (
	"slices"
	"testing"

	"aiv/auth"
	"aiv/cmd/aiv/capability"
	"aiv/insights/events"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func queryTexts(t *testing.T, db store.Querier, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	must(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return texts
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	t.Run("own each object once", func(t *testing.T) { checkOwners(t, pool) })
	t.Run("have tables that Citus distributes", func(t *testing.T) { checkTablesByAccount(t, pool) })
	t.Run("erase and purge rows", func(t *testing.T) { checkRowsOfAccountsAndRuns(t, pool) })
}

// checkOwners: the capabilities list exactly the tables, functions and sequences of the schema.
func checkOwners(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var tables, functions, sequences []string
	for _, c := range capability.All {
		if c.Name == "" {
			t.Error("a capability has no name")
		}
		for _, table := range c.Tables {
			tables = append(tables, table.Name)
		}
		for _, f := range c.Functions {
			functions = append(functions, f.Name)
		}
		for _, s := range c.Sequences {
			sequences = append(sequences, s.Name)
		}
	}
	check := func(got []string, sql string) {
		t.Helper()
		want := queryTexts(t, pool, sql)
		slices.Sort(want)
		slices.Sort(got)
		equal(t, want, got, "objects of the capabilities and of the schema")
	}
	check(tables, `
SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`)
	check(functions, `
SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype`)
	check(sequences, `SELECT relname::text FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
		AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'i')`) // not of an identity column
}

// checkTablesByAccount: the unique indexes of tables that are distributed by account begin with account_id, as Citus
// requires.
func checkTablesByAccount(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var tables []string
	for _, table := range schema.Tables(capability.All) {
		if table.Placement == schema.ByAccount {
			tables = append(tables, table.Name)
		}
	}
	bad := queryTexts(t, pool, `
SELECT indexrelid::regclass::text FROM pg_index i WHERE indisunique AND indrelid = ANY ($1::text[]::regclass[])
  AND NOT EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = 'account_id')`,
		tables)
	if len(bad) > 0 {
		t.Errorf("unique indexes of tables by account that do not begin with account_id: %v", bad)
	}
}

// checkRowsOfAccountsAndRuns: each table with rows of accounts says how they are erased, and each table with rows of
// runs what a purge does.
func checkRowsOfAccountsAndRuns(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	withColumn := func(column, nullable string) []string {
		return queryTexts(t, pool, `
SELECT table_name::text FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = $1 AND is_nullable LIKE $2`, column, nullable)
	}
	ofRuns := append(withColumn("run_id", "NO"), "measurement_runs")
	mayReferToRuns := withColumn("run_id", "YES")
	ofAccounts := withColumn("account_id", "%")
	all := make(map[string]schema.Table)
	for _, table := range schema.Tables(capability.All) {
		all[table.Name] = table
	}
	for name, table := range all {
		e, p := table.Erase, table.Purge
		erases := e.Before != nil || e.First != nil || e.Last != nil || e.With != "" || e.Kept != ""
		purges := p.Prepare != nil || p.Delete != nil || p.With != ""
		if refers := slices.Contains(ofRuns, name) || slices.Contains(mayReferToRuns, name); refers != purges {
			t.Errorf("%s: refers to runs: %t; says what a purge does: %t", name, refers, purges)
		}
		if slices.Contains(ofAccounts, name) && !slices.Contains(ofRuns, name) && !erases {
			t.Errorf("%s does not say how the rows of an account are erased", name)
		}
		for _, with := range []string{e.With, p.With} {
			if _, found := all[with]; with != "" && !found {
				t.Errorf("%s: there is no table %s", name, with)
			}
		}
	}
}

// TestScopesAndEvents: the scopes and types that packages accept are those of the capabilities, and no event needs an
// unknown scope.
func TestScopesAndEvents(t *testing.T) {
	t.Parallel()
	var scopes, types []string
	for _, c := range capability.All {
		scopes = append(scopes, c.Scopes...)
	}
	for _, c := range capability.All {
		for _, e := range c.Events {
			types = append(types, e.Name)
			if e.Scope != "" && !slices.Contains(scopes, e.Scope) {
				t.Errorf("the data of %s require the unknown scope %s", e.Name, e.Scope)
			}
		}
	}
	equal(t, auth.Scopes, scopes, "scopes of the capabilities and of auth")
	equal(t, events.Types(), types, "events of the capabilities and of package events")
}
