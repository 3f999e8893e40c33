package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestReadyPrivileges: the owner, and a role with the privileges of the service, are ready. The error of another role
// names the privileges that it lacks, and what grants them. Citus cannot revoke privileges on columns.
func TestReadyPrivileges(t *testing.T) {
	t.Parallel()
	owner := storetest.Plain(t)
	ready := func(pool *pgxpool.Pool, service schema.Service) error {
		return schema.Ready(t.Context(), pool, capabilities, service)
	}
	roles := make(map[schema.Service]string)
	for _, service := range []schema.Service{schema.Serve, schema.Dispatch} {
		must(t, ready(owner, service))
		roles[service], _ = storetest.NewRole(t, owner, "_"+string(service))
		pool := as(t, owner, roles[service])
		if err := ready(pool, service); err == nil || !strings.Contains(err.Error(), "SELECT ON schema_migrations") {
			t.Errorf("%s before its role is granted anything: %v", service, err)
		}
		must(t, schema.Grant(t.Context(), owner, capabilities, service, roles[service], "test"))
		must(t, ready(pool, service))
	}
	serve, dispatch := roles[schema.Serve], roles[schema.Dispatch]
	// The advice for a role that has the privileges of the other service does not take these from it.
	const toServe = "; it has the privileges of aiv dispatch; give aiv serve another role"
	const toDispatch = "; it has the privileges of aiv serve; give aiv dispatch another role"
	grantServe := "; run `aiv migrate -grant " + serve + "` as the owner of the tables"
	grantDispatch := "; run `aiv migrate -grant-dispatch " + dispatch + "` as the owner of the tables"
	for _, test := range []struct {
		service         schema.Service
		role, revoke    string
		missing, advice string
	}{
		{schema.Serve, dispatch, "", "SELECT ON accounts, SELECT ON credentials", toServe},
		{schema.Dispatch, serve, "", "UPDATE (status) ON measurement_runs", toDispatch},
		{schema.Serve, serve, "EXECUTE ON FUNCTION cancel_run", "", grantServe},
		{schema.Serve, serve, "DELETE ON idempotency_records", "", grantServe},
		{schema.Dispatch, dispatch, "UPDATE (started_at) ON measurement_runs", "", grantDispatch},
		{schema.Dispatch, dispatch, "USAGE ON SEQUENCE job_turn_numbers", "", grantDispatch},
	} {
		from := ` FROM PUBLIC, "` + test.role + `"`
		if test.revoke != "" {
			test.missing = ": " + test.revoke + "; " // and nothing else
			storetest.Exec(t, owner, "REVOKE "+test.revoke+from)
		}
		err := ready(as(t, owner, test.role), test.service)
		if refused, ok := errors.AsType[*schema.PrivilegeError](err); !ok || !strings.Contains(err.Error(), test.missing) ||
			!strings.HasSuffix(err.Error(), test.advice) || refused.Role != test.role {
			t.Errorf("%s by %s without %q: got %v, want %s", test.service, test.role, test.revoke, err, test.missing)
		}
		byOwner := schema.CheckPrivileges(t.Context(), owner, capabilities, test.service, test.role)
		equal(t, fmt.Sprint(err), fmt.Sprint(byOwner), test.role, ": by the owner")
		if test.revoke != "" {
			storetest.Exec(t, owner, "GRANT "+test.revoke+strings.Replace(from, "FROM", "TO", 1))
		}
	}
	// The tables may be in the schema that the URL names in search_path, not in public.
	storetest.Exec(t, owner, "ALTER SCHEMA public RENAME TO elsewhere")
	must(t, ready(as(t, owner, serve, `search_path="elsewhere", pg_temp`), schema.Serve))
}

// TestReadOnly: sessions that are read-only by default are refused by services and migrations, as a standby is.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t)+"&default_transaction_read_only=on")
	_, migrated := schema.Migrate(t.Context(), pool)
	ready := schema.Ready(t.Context(), pool, capabilities, schema.Serve)
	for _, err := range []error{ready, schema.Writable(t.Context(), pool), migrated} {
		failsWith[*schema.ReadOnlyError](t, err, "the database is read-only, because default_")
	}
}

// TestGrantRefuses: where the role could create a function that the owner's statements call, or has privileges by its
// membership in another role, nothing is granted, and the error says what to revoke.
func TestGrantRefuses(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := storetest.NewRole(t, pool, "_Serve 1.0") // a name that SQL must quote
	_, group := storetest.NewRole(t, pool, "_group")
	storetest.Exec(t, pool, "ALTER ROLE "+quoted+" NOINHERIT", "GRANT "+group+" TO "+quoted) // SET ROLE needs no INHERIT
	for _, test := range []struct{ privilege, to, want string }{
		{"CREATE ON SCHEMA public", "PUBLIC", `REVOKE CREATE ON SCHEMA "public" FROM PUBLIC`},
		{"CREATE ON SCHEMA public", group, `is a member of a role that may create functions in schema public`},
		{"UPDATE ON credentials", group, "UPDATE on credentials"},
		{"TRIGGER ON accounts", "PUBLIC", "TRIGGER on accounts"},
		{"UPDATE (name) ON credentials", "PUBLIC", "UPDATE (name) on credentials"},
	} {
		storetest.Exec(t, pool, "GRANT "+test.privilege+" TO "+test.to)
		for _, service := range []schema.Service{schema.Serve, schema.Dispatch} {
			err := schema.Grant(t.Context(), pool, capabilities, service, role, "test")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: after GRANT %s TO %s: got %v, want %s", service, test.privilege, test.to, err, test.want)
			}
		}
		equal(t, []bool{false}, column[bool](t, pool, "SELECT has_table_privilege('"+role+"', 'models', 'SELECT')"), "GRANT ", test.privilege)
		storetest.Exec(t, pool, "REVOKE "+test.privilege+" FROM "+test.to)
	}
	// A right of the role itself is revoked like its others.
	storetest.Exec(t, pool, "GRANT CREATE ON SCHEMA public TO "+quoted)
	must(t, schema.Grant(t.Context(), pool, capabilities, schema.Serve, role, "test"))
}

// TestGrant checks that a role keeps no other rights, and that the role of one service is not granted the rights of the
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
	storetest.AtOnce(4, func(int) { grant(schema.Serve, "<nil>") })
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
