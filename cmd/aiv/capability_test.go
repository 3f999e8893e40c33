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
)

func queryTexts(t *testing.T, db store.Querier, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	must(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return texts
}

// TestCapabilities: the capabilities own each object of the schema, each scope and each type of events once. Tables by
// account can be distributed by Citus. Each table with rows of accounts says how they are erased, and each table with rows
// of runs what a purge does.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	var objects, byAccount, scopes, types []string
	tables := make(map[string]schema.Table)
	for _, c := range capability.All {
		for _, table := range c.Tables {
			objects = append(objects, "table "+table.Name)
			tables[table.Name] = table
			if table.Placement == schema.ByAccount {
				byAccount = append(byAccount, table.Name)
			}
		}
		for _, f := range c.Functions {
			objects = append(objects, "function "+f.Name)
		}
		for _, s := range c.Sequences {
			objects = append(objects, "sequence "+s.Name)
		}
		scopes = append(scopes, c.Scopes...)
		for _, e := range c.Events {
			types = append(types, e.Name)
			if e.Scope != "" && !slices.Contains(auth.Scopes, e.Scope) {
				t.Errorf("the data of %s require the unknown scope %s", e.Name, e.Scope)
			}
		}
	}
	equal(t, auth.Scopes, scopes, "scopes of the capabilities and of auth")
	equal(t, events.Types(), types, "events of the capabilities and of package events")
	slices.Sort(objects)
	equal(t, queryTexts(t, pool, `
SELECT object FROM (
  SELECT 'table ' || relname AS object FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
  UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype
  UNION ALL SELECT 'sequence ' || relname FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'i') -- not of an identity column
) o ORDER BY object COLLATE "C"`), objects, "objects of the capabilities and of the schema")
	equal(t, []string{}, queryTexts(t, pool, `
SELECT indexrelid::regclass::text FROM pg_index i WHERE indisunique AND indrelid = ANY ($1::text[]::regclass[])
  AND NOT EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = 'account_id')`, byAccount),
		"unique indexes of tables by account that do not begin with account_id")

	withColumn := func(column, nullable string) []string {
		return queryTexts(t, pool, `
SELECT table_name::text FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = $1 AND is_nullable LIKE $2`, column, nullable)
	}
	ofRuns, mayReferToRuns := append(withColumn("run_id", "NO"), "measurement_runs"), withColumn("run_id", "YES")
	ofAccounts := withColumn("account_id", "%")
	for name, table := range tables {
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
			if _, found := tables[with]; with != "" && !found {
				t.Errorf("%s: there is no table %s", name, with)
			}
		}
	}
}
