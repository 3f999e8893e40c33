package schema_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestGrantRefuses: where the role could create a function that the owner's statements call, or has privileges by its
// membership in another role, nothing is granted, and the error says what to revoke.
func TestGrantRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := storetest.NewRole(t, pool, "_serve")
	_, group := storetest.NewRole(t, pool, "_group")
	storetest.Exec(t, pool, "GRANT "+group+" TO "+quoted)
	for _, test := range []struct{ grant, revoke, want string }{
		{"GRANT CREATE ON SCHEMA public TO PUBLIC", "REVOKE CREATE ON SCHEMA public FROM PUBLIC", `REVOKE CREATE ON SCHEMA "public" FROM PUBLIC`},
		{"GRANT CREATE ON SCHEMA public TO " + group, "REVOKE CREATE ON SCHEMA public FROM " + group, `REVOKE CREATE ON SCHEMA "public" FROM that role`},
		{"GRANT UPDATE ON credentials TO " + group, "REVOKE UPDATE ON credentials FROM " + group, "UPDATE on credentials"},
		{"GRANT UPDATE (name) ON credentials TO PUBLIC", "REVOKE UPDATE (name) ON credentials FROM PUBLIC", "UPDATE (name) on credentials"},
	} {
		storetest.Exec(t, pool, test.grant)
		for _, service := range []schema.Service{schema.Serve, schema.Dispatch} {
			if err := schema.Grant(t.Context(), pool, capabilities, service, role, "test"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: after %s: got %v, want %s", service, test.grant, err, test.want)
			}
		}
		var granted bool
		if err := pool.QueryRow(t.Context(), `SELECT has_table_privilege($1, 'models', 'SELECT')`, role).Scan(&granted); err != nil || granted {
			t.Errorf("after %s: the refused role was granted rights: %v, %v", test.grant, granted, err)
		}
		storetest.Exec(t, pool, test.revoke)
	}
	// A right of the role itself is revoked like its others.
	storetest.Exec(t, pool, "GRANT CREATE ON SCHEMA public TO "+quoted)
	if err := schema.Grant(t.Context(), pool, capabilities, schema.Serve, role, "test"); err != nil {
		t.Error(err)
	}
}

// TestGrant checks that a role keeps no other rights, and that the role of one service is not granted those of the
// other. Several hosts may be deployed at once.
func TestGrant(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := storetest.NewRole(t, pool, "_dispatch")
	grant := func(service schema.Service, fault string) {
		t.Helper()
		if err := schema.Grant(t.Context(), pool, capabilities, service, role, "test"); (err == nil) != (fault == "") || err != nil && err.Error() != fault {
			t.Fatalf("%s: got %v, want %q", service, err, fault)
		}
	}
	revoke := `REVOKE ALL ON ALL TABLES IN SCHEMA "public" FROM ` + quoted
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := schema.Grant(t.Context(), pool, capabilities, schema.Serve, role, "test"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	grant(schema.Dispatch, `"`+role+`" is the role of aiv serve; give aiv dispatch another role, or run `+revoke+` first`)
	if err := schema.CheckPrivileges(t.Context(), pool, capabilities, schema.Serve, role); err != nil {
		t.Errorf("after the refused grant: %v", err)
	}
	storetest.Exec(t, pool, revoke)
	storetest.Exec(t, pool, "GRANT SELECT, DELETE ON audit_log, credentials, measurement_jobs TO "+quoted)
	grant(schema.Dispatch, "")
	grant(schema.Serve, `"`+role+`" is the role of aiv dispatch; give aiv serve another role, or run `+revoke+` first`)
	for sql, allowed := range map[string]bool{
		`SELECT FROM provider_dependencies`:              true,
		`SELECT FROM measurement_jobs`:                   false,
		`UPDATE measurement_runs SET status = 'running'`: true,
		`UPDATE measurement_runs SET repetitions = 1`:    false,
		`DELETE FROM measurement_runs`:                   false,
		`SELECT FROM credentials`:                        false,
		`SELECT FROM idempotency_records`:                false,
		`SELECT FROM audit_log`:                          false,
		`UPDATE models SET status = 'active'`:            false,
		`UPDATE provider_dependencies SET met = true`:    false,
		`CREATE FUNCTION f() RETURNS int RETURN 1`:       false,
		`DELETE FROM usage_records`:                      false,
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+quoted); err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(t.Context(), sql)
		e, _ := errors.AsType[*pgconn.PgError](err)
		if refused := e != nil && e.Code == "42501"; refused == allowed || allowed && err != nil {
			t.Errorf("%s: got %v, allowed: %v", sql, err, allowed)
		}
		tx.Rollback(t.Context())
	}
}
