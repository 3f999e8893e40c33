package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestGrantRefuses: where the role could create a function that the owner's statements call, or has privileges by its
// membership in another role, nothing is granted, and the error says what to revoke.
func TestGrantRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := storetest.NewRole(t, pool, "_Serve 1.0") // a name that SQL must quote
	_, group := storetest.NewRole(t, pool, "_group")
	storetest.Exec(t, pool, "GRANT "+group+" TO "+quoted)
	for _, test := range []struct{ privilege, to, want string }{
		{"CREATE ON SCHEMA public", "PUBLIC", `REVOKE CREATE ON SCHEMA "public" FROM PUBLIC`},
		{"UPDATE ON credentials", group, "UPDATE on credentials"},
		{"UPDATE (name) ON credentials", "PUBLIC", "UPDATE (name) on credentials"},
	} {
		storetest.Exec(t, pool, "GRANT "+test.privilege+" TO "+test.to)
		for _, service := range []schema.Service{schema.Serve, schema.Dispatch} {
			err := schema.Grant(t.Context(), pool, capabilities, service, role, "test")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: after GRANT %s TO %s: got %v, want %s", service, test.privilege, test.to, err, test.want)
			}
		}
		granted := column[bool](t, pool, "SELECT has_table_privilege('"+role+"', 'models', 'SELECT')")
		equal(t, []bool{false}, granted, "after GRANT ", test.privilege, ": the refused role was granted rights")
		storetest.Exec(t, pool, "REVOKE "+test.privilege+" FROM "+test.to)
	}
	// A right of the role itself is revoked like its others.
	storetest.Exec(t, pool, "GRANT CREATE ON SCHEMA public TO "+quoted)
	must(t, schema.Grant(t.Context(), pool, capabilities, schema.Serve, role, "test"))
}

// TestGrant checks that a role keeps no other rights, and that the role of one service is not granted those of the
// other. Several hosts may be deployed at once.
func TestGrant(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := storetest.NewRole(t, pool, "_dispatch")
	grant := func(service schema.Service, want string) {
		t.Helper()
		equal(t, want, fmt.Sprint(schema.Grant(t.Context(), pool, capabilities, service, role, "test")), service)
	}
	revoke := `REVOKE ALL ON ALL TABLES IN SCHEMA "public" FROM ` + quoted
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { grant(schema.Serve, "<nil>") })
	}
	wg.Wait()
	grant(schema.Dispatch, `"`+role+`" is the role of aiv serve; give aiv dispatch another role, or run `+revoke+` first`)
	must(t, schema.CheckPrivileges(t.Context(), pool, capabilities, schema.Serve, role))
	storetest.Exec(t, pool, revoke, "GRANT SELECT, DELETE ON audit_log, credentials, measurement_jobs TO "+quoted)
	grant(schema.Dispatch, "<nil>")
	grant(schema.Serve, `"`+role+`" is the role of aiv dispatch; give aiv serve another role, or run `+revoke+` first`)
	got := column[string](t, pool, `
SELECT concat_ws(' ', has_table_privilege(r, 'provider_dependencies', 'SELECT'),
  has_column_privilege(r, 'measurement_runs', 'status', 'UPDATE'), has_column_privilege(r, 'measurement_runs', 'repetitions', 'UPDATE'),
  has_table_privilege(r, 'measurement_jobs', 'SELECT'), has_table_privilege(r, 'audit_log', 'SELECT, DELETE'),
  has_table_privilege(r, 'models', 'UPDATE'), has_schema_privilege(r, 'public', 'CREATE'))
FROM (VALUES (`+"'"+role+"'"+`)) v (r)`)
	equal(t, []string{"t t f f f f f"}, got, "privileges")
}
