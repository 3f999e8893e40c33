package main

import (
	"testing"

	"aiv/store/storetest"
)

// TestMigrateDistributeWithoutCitus: on plain PostgreSQL -distribute reports what is missing and applies no migration.
func TestMigrateDistributeWithoutCitus(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.run(t, []step{{line: "migrate -distribute", code: 1, stderr: "aiv: the extension citus is missing in this database; " +
		"run CREATE EXTENSION citus on a server that has it, or leave the database as it is: nothing was changed\n"}})
	var tables int
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables > 0 {
		t.Errorf("the database has %d relations, want none", tables)
	}
}
