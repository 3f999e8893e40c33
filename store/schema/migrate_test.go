package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// files makes a migration source: each text is the SQL of the next number.
func files(texts ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, text := range texts {
		fs[fmt.Sprintf("migrations/%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func emptyPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := store.Open(t.Context(), storetest.Empty(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func names(migrations []schema.Migration) []string {
	var names []string
	for _, m := range migrations {
		names = append(names, m.String())
	}
	return names
}

func TestMigrationsRunOnce(t *testing.T) {
	t.Parallel()
	pool := emptyPool(t)
	const one, two = `CREATE TABLE one (); CREATE TABLE uno ();`, `CREATE TABLE two ();`
	type step struct {
		files   fstest.MapFS
		applied []string
		fault   string
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"twice", []step{
			{files(one, two), []string{"0001_step", "0002_step"}, ""},
			{files(one, two), nil, ""},
		}},
		{"one after the other", []step{
			{files(one), []string{"0001_step"}, ""},
			{files(one, two), []string{"0002_step"}, ""},
		}},
		{"a failing one leaves nothing, not even its first half", []step{
			{files(one, "CREATE TABLE half ();\nSELECT nonsense;"), []string{"0001_step"}, "apply migration 0002_step, line 2"},
			{files(one, "CREATE TABLE half ();"), []string{"0002_step"}, ""},
		}},
		{"a changed one", []step{
			{files(one), []string{"0001_step"}, ""},
			{files(one+" ", two), nil, "the database has another version of migration 0001_step"},
		}},
		{"a newer database", []step{
			{files(one, two), []string{"0001_step", "0002_step"}, ""},
			{files(one), nil, "the database is newer than this binary: it has migration 0002_step"},
		}},
		{"a newer database that is compatible", []step{
			{files(one, "-- oldest-compatible: 0001\n"+two), []string{"0001_step", "0002_step"}, ""},
			{files(one), nil, ""},
		}},
		{"a newer database that is compatible with later binaries", []step{
			{files(one, two, "-- oldest-compatible: 0002\nCREATE TABLE three ();"), []string{"0001_step", "0002_step", "0003_step"}, ""},
			{files(one, two), nil, ""},
			{files(one), nil, "it has 2 migrations (0002_step, 0003_step)"},
		}},
		{"one between that the binary lacks", []step{
			{files(one, two), []string{"0001_step", "0002_step"}, ""},
			{fstest.MapFS{"migrations/0001_step.sql": {Data: []byte(one)}, "migrations/0003_step.sql": {Data: []byte(two)}}, nil, "it has migration 0002_step"},
		}},
		{"a newer database that is compatible but lacks an older one", []step{
			{fstest.MapFS{"migrations/0001_step.sql": {Data: []byte(one)}, "migrations/0003_step.sql": {Data: []byte("-- oldest-compatible: 0001\n")}},
				[]string{"0001_step", "0003_step"}, ""},
			{files(one, two), nil, "it has migration 0003_step"},
		}},
		{"a newer database of which one is changed", []step{
			{files(one, two), []string{"0001_step", "0002_step"}, ""},
			{files(one + " "), nil, "the database is newer than this binary"},
		}},
		{"compatible with itself only", []step{
			{files("-- oldest-compatible: 0001\n" + one), nil, "oldest-compatible must be an older migration"},
		}},
		{"two with one number", []step{
			{fstest.MapFS{"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}}, nil, "its number is used by 0001_a"},
		}},
		{"a strange name", []step{
			{fstest.MapFS{"migrations/1-a.sql": {}}, nil, "its name is not NNNN_name.sql"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			storetest.Exec(t, pool, `DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`)
			for i, s := range test.steps {
				applied, err := schema.MigrateFrom(t.Context(), pool, s.files)
				if diff := cmp.Diff(s.applied, names(applied)); diff != "" {
					t.Errorf("step %d: applied (-want +got):\n%s", i, diff)
				}
				if fmt.Sprint(err) != "<nil>" && s.fault == "" || s.fault != "" && !strings.Contains(fmt.Sprint(err), s.fault) {
					t.Errorf("step %d: got error %v, want %q", i, err, s.fault)
				}
			}
		})
	}
}

// TestMigrateAtOnce: one of several processes migrates, for longer than the timeouts of the pool's sessions; the others
// wait for it.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t) + "&lock_timeout=50ms&statement_timeout=200ms"
	source := files(`SELECT pg_sleep(0.5); CREATE TABLE one (i int);`, `CREATE INDEX x ON one (i);`)
	var mu sync.Mutex
	var applied []string
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			pool, err := store.Open(t.Context(), url, 2)
			if err != nil {
				t.Error(err)
				return
			}
			defer pool.Close()
			mine, err := schema.MigrateFrom(t.Context(), pool, source)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, names(mine)...)
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"0001_step", "0002_step"}, applied); diff != "" {
		t.Errorf("applied by all (-want +got):\n%s", diff)
	}
}

// TestMigrateStopsWaiting: a process that is interrupted while another one migrates stops waiting for it.
func TestMigrateStopsWaiting(t *testing.T) {
	t.Parallel()
	pool := emptyPool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, schema.MigrateLock); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, err := schema.Migrate(ctx, pool)
		ended <- err
	}()
	waiting := func() (n int) {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	storetest.Eventually(t, "the migration waits for the lock", func() bool { return waiting() == 1 })
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	storetest.Eventually(t, "its session has ended", func() bool { return waiting() == 0 })
}

// TestStatus: before the migrations, with them, and with a newer one, services and migrations get the same error. The
// data of release 0.1.0, whose table of the migrations lacks a column, cannot be upgraded.
func TestStatus(t *testing.T) {
	t.Parallel()
	pool := emptyPool(t)
	read := func() schema.Status {
		t.Helper()
		status, err := schema.ReadStatus(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	ready := func() error { return schema.Ready(t.Context(), pool, capabilities, schema.Serve) }
	pending := read()
	if err := pending.Err(); !isPending(err) || !strings.Contains(err.Error(), "aiv migrate") {
		t.Errorf("empty database: got %v, want a *PendingError that says what to run", err)
	}
	if err := ready(); !isPending(err) {
		t.Errorf("ready without tables: %v", err)
	}
	storetest.Exec(t, pool, `CREATE TABLE schema_migrations (version int, name text, checksum bytea, applied_at timestamptz, oldest_compatible int)`)
	if err := ready(); !isPending(err) {
		t.Errorf("ready without migrations: %v", err)
	}

	storetest.Exec(t, pool, `ALTER TABLE schema_migrations DROP COLUMN oldest_compatible`,
		`INSERT INTO schema_migrations VALUES (1, 'identity', '', now())`)
	_, statusErr := schema.ReadStatus(t.Context(), pool)
	_, migrateErr := schema.Migrate(t.Context(), pool)
	for name, err := range map[string]error{"ReadStatus": statusErr, "Migrate": migrateErr, "Ready": ready()} {
		if _, ok := errors.AsType[*schema.ChangedError](err); !ok || !strings.HasPrefix(err.Error(), "the table schema_migrations has other columns: ") {
			t.Errorf("the first release: %s: got %v, want a *ChangedError", name, err)
		}
	}

	storetest.Exec(t, pool, `DROP TABLE schema_migrations`)
	applied, err := schema.Migrate(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(pending.Pending), names(applied)); diff != "" {
		t.Errorf("applied what was pending (-want +got):\n%s", diff)
	}
	status := read()
	if status.Err() != nil {
		t.Errorf("migrated database: %v", status.Err())
	}
	if diff := cmp.Diff(names(applied), names(status.Applied)); diff != "" {
		t.Errorf("status after migrating (-want +got):\n%s", diff)
	}

	storetest.Exec(t, pool, `INSERT INTO schema_migrations VALUES (9000, 'future', '')`)
	_, err = schema.Migrate(t.Context(), pool)
	for name, err := range map[string]error{"ReadStatus": read().Err(), "Migrate": err, "Ready": ready()} {
		if _, ok := errors.AsType[*schema.NewerError](err); !ok {
			t.Errorf("newer database: %s: got %v, want a *NewerError", name, err)
		}
	}
}

func isPending(err error) bool {
	_, pending := errors.AsType[*schema.PendingError](err)
	return pending
}

// TestMigrateBehindALock: a migration that waits for a lock, here after another statement, reports the session that
// holds it, lets writers pass, and is applied when the lock is free, or given up.
func TestMigrateBehindALock(t *testing.T) {
	t.Parallel()
	pool := emptyPool(t)
	if _, err := schema.MigrateFrom(t.Context(), pool, files(`CREATE TABLE one (i int)`)); err != nil {
		t.Fatal(err)
	}
	role, quoted := storetest.NewRole(t, pool, "_owner")
	storetest.Exec(t, pool, `GRANT SELECT ON schema_migrations TO `+quoted, `GRANT CREATE ON SCHEMA public TO `+quoted, `ALTER TABLE one OWNER TO `+quoted)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var holder int
	if err := tx.QueryRow(t.Context(), `SELECT pg_backend_pid() FROM (SELECT count(*) FROM one) c`).Scan(&holder); err != nil {
		t.Fatal(err)
	}
	next := files(`CREATE TABLE one (i int)`, `SELECT pg_sleep(0.2); ALTER TABLE one ADD j int`)
	config := schema.Config{}.From(next).Locking(time.Second, 2)
	_, err = config.Migrate(t.Context(), pool)
	if want := fmt.Sprintf("held by process %d (aiv, idle in transaction", holder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}

	_, err = config.Locking(time.Second, 1).Migrate(t.Context(), as(t, pool, role))
	want := fmt.Sprintf("held by process %d (aiv; GRANT pg_read_all_stats TO %s shows more);", holder, role)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("by a role that may not read the session: got error %v, want %q", err, want)
	}
	config = config.Locking(500*time.Millisecond, 1000)
	config.Report = func(string) { tx.Rollback(t.Context()) }
	applied, err := config.Migrate(t.Context(), pool)
	if err != nil || len(applied) != 1 {
		t.Errorf("after the lock was released: applied %v, %v", names(applied), err)
	}
}

// TestMigrationsArePlannedPlainly: a migration may join and sort all rows of a table, so it has the planner's defaults,
// and no timeouts but that of locks, even if the pool's sessions are hot.
func TestMigrationsArePlannedPlainly(t *testing.T) {
	t.Parallel()
	pool, err := store.OpenHot(t.Context(), storetest.Empty(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = schema.MigrateFrom(t.Context(), pool, files(`
CREATE TABLE seen AS SELECT name, current_setting(name) AS value FROM unnest('{plan_cache_mode,enable_seqscan,enable_bitmapscan,enable_sort,
  enable_incremental_sort,statement_timeout,lock_timeout,idle_in_transaction_session_timeout}'::text[]) AS s (name)`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := pool.QueryRow(t.Context(), `SELECT array_agg(name || ' ' || value ORDER BY name) FROM seen`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	want := []string{"enable_bitmapscan on", "enable_incremental_sort on", "enable_seqscan on", "enable_sort on",
		"idle_in_transaction_session_timeout 0", "lock_timeout 2s", "plan_cache_mode auto", "statement_timeout 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings of a migration (-want +got):\n%s", diff)
	}
}
