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

// TestMigrateGrantIsAudited: each grant is in the audit log, and one that is refused is not.
func TestMigrateGrantIsAudited(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := connect(t, url)
	name := pool.Config().ConnConfig.Database
	serve, dispatch := "audited_serve_"+name, "audited_dispatch_"+name
	if _, err := pool.Exec(t.Context(), "CREATE ROLE "+serve+" LOGIN; CREATE ROLE "+dispatch+" LOGIN"); err != nil {
		t.Fatal(err)
	}
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.run(t, []step{
		{line: "migrate -json -actor ann -grant " + serve + " -grant-dispatch " + dispatch,
			stdout: `{"applied":[],"granted":"` + serve + `","granted_dispatch":"` + dispatch + `"}` + "\n"},
		{line: "migrate -grant aiv", code: 1, stderr: "aiv: \"aiv\" is a superuser, which has all privileges; choose another role\n"},
		{line: "migrate", stdout: "The database is up to date.\n"},
		{line: "audit list -json", stdout: `[{"at":"{time}","actor":"ann","action":"migrate.grant-dispatch","subject":"` + dispatch + `","detail":{}},` +
			`{"at":"{time}","actor":"ann","action":"migrate.grant","subject":"` + serve + `","detail":{}}]` + "\n"},
	})
}
