package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// files makes a migration source: each text is the SQL of the next number. An empty one is left out.
func files(texts ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, text := range texts {
		if text != "" {
			fs[fmt.Sprintf("migrations/%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return fs
}

func TestMigrationsRunOnce(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t))
	const one, two = `CREATE TABLE one (); CREATE TABLE uno ();`, `CREATE TABLE two ();`
	const newer = "the database is newer than this binary: it has "
	type step struct {
		files fstest.MapFS
		want  string // the migrations that are applied, and the error
	}
	for name, steps := range map[string][]step{
		"twice": {
			{files(one, two), "0001_step 0002_step"},
			{files(one, two), ""},
		},
		"a failing one leaves nothing, not even its first half": {
			{files(one, "CREATE TABLE half ();\nSELECT nonsense;"),
				`0001_step: apply migration 0002_step, line 2: ERROR: column "nonsense" does not exist (SQLSTATE 42703)`},
			{files(one, "CREATE TABLE half ();"), "0002_step"},
		},
		"a changed one": {
			{files(one), "0001_step"},
			{files(one+" ", two), ": the database has another version of migration 0001_step; use the binary that applied it"},
		},
		"a newer database": {
			{files(one, two), "0001_step 0002_step"},
			{files(one), ": " + newer + "migration 0002_step; use the newer binary"},
		},
		"a newer database that is compatible with later binaries": {
			{files(one, two, "-- oldest-compatible: 0002\nCREATE TABLE three ();"), "0001_step 0002_step 0003_step"},
			{files(one, two), ""},
			{files(one), ": " + newer + "2 migrations (0002_step, 0003_step); use the newer binary"},
		},
		"a newer database that is compatible but lacks an older one": {
			{files(one, "", "-- oldest-compatible: 0001\n"), "0001_step 0003_step"},
			{files(one, two), ": " + newer + "migration 0003_step; use the newer binary"},
		},
	} {
		storetest.Exec(t, pool, `DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`)
		for i, s := range steps {
			applied, err := schema.Config{}.From(s.files).Migrate(t.Context(), pool)
			got := names(applied)
			if err != nil {
				got += ": " + err.Error()
			}
			equal(t, s.want, got, name, ": step ", i)
		}
	}
}

// TestMigrateAtOnce: one of several processes migrates; the others wait for it, for longer than the pool's sessions wait
// for a lock.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t)+"&lock_timeout=1ms")
	const others = `SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
		WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`
	source := files(`
DO $$ BEGIN
  WHILE (`+others+`) < 3 LOOP
    PERFORM pg_sleep(0.01);
  END LOOP;
  PERFORM pg_sleep(0.02);
END $$;
CREATE TABLE one (i int);`, `CREATE INDEX x ON one (i);`)
	applied := make([]string, 4)
	storetest.AtOnce(4, func(i int) {
		mine, err := schema.Config{}.From(source).Migrate(t.Context(), pool)
		if err != nil {
			t.Error(err)
		}
		applied[i] = names(mine)
	})
	equal(t, "0001_step 0002_step", strings.Join(applied, ""), "applied by all")
}

// TestStatus: before the migrations, with them, and with a newer one, services and migrations get the same error. The
// data of release 0.1.0, whose table of the migrations lacks a column, cannot be upgraded.
func TestStatus(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t))
	ready := func() error { return schema.Ready(t.Context(), pool, capabilities, schema.Serve) }
	all := func() map[string]error {
		s, err := schema.ReadStatus(t.Context(), pool)
		_, migrated := schema.Migrate(t.Context(), pool)
		return map[string]error{"status": errors.Join(err, s.Err()), "migrate": migrated, "ready": ready()}
	}
	pending, err := schema.ReadStatus(t.Context(), pool)
	must(t, err)
	failsWith[*schema.PendingError](t, pending.Err(), "the database lacks ", "without tables")
	failsWith[*schema.PendingError](t, ready(), "the database lacks ", "ready without tables")

	storetest.Exec(t, pool, `CREATE TABLE schema_migrations (version int, name text, checksum bytea, applied_at timestamptz)`,
		`INSERT INTO schema_migrations VALUES (1, 'identity', '', now())`)
	for name, err := range all() {
		failsWith[*schema.ChangedError](t, err, "the table schema_migrations has other columns: ", "release 0.1.0: ", name)
	}

	storetest.Exec(t, pool, `DROP TABLE schema_migrations`)
	applied, err := schema.Migrate(t.Context(), pool)
	must(t, err)
	equal(t, names(pending.Pending), names(applied), "applied what was pending")
	migrated, err := schema.ReadStatus(t.Context(), pool)
	must(t, errors.Join(err, migrated.Err()))
	equal(t, names(applied), names(migrated.Applied), "status after migrating")

	storetest.Exec(t, pool, `INSERT INTO schema_migrations VALUES (9000, 'future', '')`)
	for name, err := range all() {
		failsWith[*schema.NewerError](t, err, "the database is newer than this binary: it has migration 9000_future", name)
	}
}

// failsWith reports an error that has another type or beginning.
func failsWith[E error](t *testing.T, err error, beginning string, what ...any) {
	t.Helper()
	if e, ok := errors.AsType[E](err); !ok || !strings.HasPrefix(e.Error(), beginning) {
		t.Errorf("%s: got %T %[2]v, want %s…", fmt.Sprint(what...), err, beginning)
	}
}

// TestMigrateBehindALock: a migration that waits for a lock, here after another statement, reports the session that
// holds it, lets writers pass, and is applied when the lock is free, or given up.
func TestMigrateBehindALock(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t)+"&idle_in_transaction_session_timeout=0")
	const one = `CREATE TABLE one (i int)`
	_, err := schema.Config{}.From(files(one)).Migrate(t.Context(), pool)
	must(t, err)
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context())
	var holder int
	must(t, tx.QueryRow(t.Context(), `SELECT pg_backend_pid() FROM (SELECT count(*) FROM one) c`).Scan(&holder))
	config := schema.Config{}.From(files(one, `SELECT pg_sleep(0.2); ALTER TABLE one ADD j int`))

	storetest.Eventually(t, "the error names the session", func() bool { // or it looked only before or after the wait
		_, err := config.Locking(time.Second, 2).Migrate(t.Context(), pool)
		if !store.IsLockTimeout(err) {
			t.Fatalf("got error %v, want a lock timeout", err)
		}
		return strings.Contains(err.Error(), fmt.Sprintf("held by process %d (aiv, idle in transaction", holder))
	})
	config.Report = func(string) { tx.Rollback(t.Context()) }
	applied, err := config.Locking(500*time.Millisecond, 1000).Migrate(t.Context(), pool)
	must(t, err)
	equal(t, "0002_step", names(applied), "applied after the lock was released")
}
