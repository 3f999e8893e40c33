//go:build citus

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"aiv/cmd/aiv/capability"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestUpgradeOfADistributedDatabase: a database that the oldest release whose databases can be upgraded has distributed,
// with rows, gets the columns, constraints, indexes and placements of a new one, and every invariant holds.
func TestUpgradeOfADistributedDatabase(t *testing.T) {
	if !storetest.OnCitus() {
		t.Fatal("-citus is missing: the URL of a coordinator")
	}
	fresh := describeDistributed(t, connect(t, storetest.URL(t)))
	all, err := filepath.Glob("../../store/schema/migrations/*.sql")
	must(t, err)
	url := storetest.EmptyOnCitus(t)
	storetest.MigrateAsThen(t, url, all[:13])
	pool := connect(t, url)
	_, err = schema.Distribute(t.Context(), pool, existing(t, pool))
	must(t, err)
	storetest.Exec(t, pool, sampleRows)
	expect(t, url, prints{"migrate", 0, ""}, prints{"migrate -distribute", 0, ""}, prints{"verify", 0, ""})
	equal(t, fresh, describeDistributed(t, pool), "upgraded database")
	equal(t, []string{"5 1 5", "5 1 5"}, queryTexts(t, connect(t, url), `SELECT result FROM run_command_on_workers($$SELECT concat_ws(' ',
		current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'))$$)`),
		"keepalives of sessions on the other servers")
}

// existing returns the capabilities without tables that the database does not have.
func existing(t *testing.T, pool *pgxpool.Pool) []schema.Capability {
	t.Helper()
	all := slices.Clone(capability.All)
	for i := range all {
		all[i].Tables = slices.DeleteFunc(slices.Clone(all[i].Tables), func(table schema.Table) (missing bool) {
			must(t, pool.QueryRow(t.Context(), `SELECT to_regclass($1) IS NULL`, table.Name).Scan(&missing))
			return missing
		})
	}
	return all
}

// sampleRows are rows that migrations move, copy or check.
const sampleRows = `
INSERT INTO plans (code, features) VALUES ('p', '{api_access}');
INSERT INTO accounts (id, name, plan_code) VALUES (md5('a')::uuid, 'A', 'p');
INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) VALUES (md5('c')::uuid, md5('a')::uuid, 'c', 'aiv_live_00000000', sha256('c'), '{}');
INSERT INTO providers (code, name) VALUES ('p', 'P');
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
  VALUES ('m', 'M', 'p', 'm', 'active', '{grounded}', true);
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
  locale, country, language, total_jobs, jobs_completed, created_at, started_at, finished_at)
  SELECT md5('a')::uuid, md5('r')::uuid, md5('c')::uuid, 'completed', 'grounded', 'AIVM-1.0', '{m}', '{q}', 1,
    'it-IT', 'IT', 'it', 1, 1, at, at, at FROM (SELECT now() - interval '60 days' AS at) t;
INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id) SELECT account_id, 'm', created_at, id FROM measurement_runs;
INSERT INTO measurement_jobs (account_id, run_id, ordinal) SELECT account_id, id, 1 FROM measurement_runs;
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
  SELECT account_id, id, 1, 1, true, created_at, created_at, '{"text":"Kovalt"}' FROM measurement_runs;
INSERT INTO usage_records (account_id, run_id, credential_id, jobs, measurement_type, methodology_version, created_at)
  SELECT account_id, id, credential_id, 1, measurement_type, methodology_version, created_at FROM measurement_runs;
INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed)
  SELECT account_id, date_trunc('month', created_at, 'UTC'), 1, 1, 1 FROM measurement_runs;
INSERT INTO questions (id, account_id, text, language, country, topic, tags, status)
  VALUES ('q', md5('a')::uuid, '?', 'it', 'IT', 't', '{x}', 'active');
INSERT INTO question_tags (owner, tag, question_id) VALUES (md5('a')::uuid, 'x', 'q')`

// describeDistributed returns a line for each column, constraint, index and placement.
func describeDistributed(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	var names []string
	for _, table := range schema.Tables(capability.All) {
		names = append(names, table.Name)
	}
	return queryTexts(t, pool, `
SELECT line FROM (
  SELECT format('%s column %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
    pg_get_expr(d.adbin, d.adrelid)) AS line
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relname = ANY ($1) AND c.relkind = 'r'
  UNION ALL
  SELECT format('%s constraint %s: %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
  WHERE conrelid::regclass::text = ANY ($1) AND contype <> 'n'
  UNION ALL
  SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid::regclass::text = ANY ($1)
  UNION ALL
  SELECT format('%s is placed %s %s %s', logicalrelid, partmethod, colocationid > 0, repmodel) FROM pg_dist_partition WHERE logicalrelid::text = ANY ($1)
) s ORDER BY line`, names)
}
