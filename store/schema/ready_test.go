package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// as returns a pool of another role's sessions.
func as(t *testing.T, owner *pgxpool.Pool, role string) *pgxpool.Pool {
	t.Helper()
	config := owner.Config()
	config.ConnConfig.User, config.MaxConns = role, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// grantRoles returns a role for each service.
func grantRoles(t *testing.T, owner *pgxpool.Pool) map[schema.Service]string {
	t.Helper()
	roles := make(map[schema.Service]string)
	for _, service := range []schema.Service{schema.Serve, schema.Dispatch} {
		if err := schema.Ready(t.Context(), owner, capabilities, service); err != nil {
			t.Errorf("%s as the owner: %v", service, err)
		}
		role, _ := storetest.NewRole(t, owner, "_"+string(service))
		roles[service] = role
		if err := schema.Ready(t.Context(), as(t, owner, role), capabilities, service); err == nil || !strings.Contains(err.Error(), "SELECT ON schema_migrations") {
			t.Errorf("%s before its role is granted anything: %v", service, err)
		}
		if err := schema.Grant(t.Context(), owner, capabilities, service, role, "test"); err != nil {
			t.Fatal(err)
		}
		if err := schema.Ready(t.Context(), as(t, owner, role), capabilities, service); err != nil {
			t.Errorf("%s: %v", service, err)
		}
	}
	return roles
}

// TestReadyPrivileges: the owner, and a role with the privileges of the service, are ready. The error of another role
// names the privileges that it lacks, and what grants them. Citus cannot revoke privileges on columns.
func TestReadyPrivileges(t *testing.T) {
	t.Parallel()
	owner := storetest.Plain(t)
	roles := grantRoles(t, owner)
	serve, dispatch := `"`+roles[schema.Serve]+`"`, `"`+roles[schema.Dispatch]+`"`
	for _, test := range []struct {
		service          schema.Service
		revoke, from, by string // role
		want             string
	}{
		{schema.Serve, "", "", dispatch, "SELECT ON accounts, SELECT ON credentials"},
		{schema.Dispatch, "", "", serve, "UPDATE (status) ON measurement_runs"},
		{schema.Serve, "SELECT ON plans", serve, serve, ": SELECT ON plans; "},
		{schema.Serve, "EXECUTE ON FUNCTION cancel_run", serve, serve, ": EXECUTE ON FUNCTION cancel_run; "},
		{schema.Serve, "DELETE ON idempotency_records", serve, serve, ": DELETE ON idempotency_records; "},
		{schema.Dispatch, "UPDATE (started_at) ON measurement_runs", dispatch, dispatch, ": UPDATE (started_at) ON measurement_runs; "},
		{schema.Dispatch, "USAGE ON SEQUENCE job_turn_numbers", dispatch, dispatch, ": USAGE ON SEQUENCE job_turn_numbers; "},
		{schema.Dispatch, "USAGE ON SCHEMA public", "PUBLIC, " + dispatch, dispatch, ": USAGE ON SCHEMA public; "},
	} {
		if test.revoke != "" {
			storetest.Exec(t, owner, "REVOKE "+test.revoke+" FROM "+test.from)
		}
		role := strings.Trim(test.by, `"`)
		err := schema.Ready(t.Context(), as(t, owner, role), capabilities, test.service)
		advice := map[schema.Service]string{schema.Serve: "-grant ", schema.Dispatch: "-grant-dispatch "}[test.service]
		advice = "; run `aiv migrate " + advice + role + "` as the owner of the tables"
		if test.revoke == "" { // the role of the other service, from which the command would take its privileges
			advice = map[schema.Service]string{schema.Serve: "; it has those of aiv dispatch; give aiv serve another role",
				schema.Dispatch: "; it has those of aiv serve; give aiv dispatch another role"}[test.service]
		}
		if refused, ok := errors.AsType[*schema.PrivilegeError](err); !ok || !strings.Contains(err.Error(), test.want) ||
			!strings.HasSuffix(err.Error(), advice) || refused.Role != role {
			t.Errorf("%s by %s without %q: got %v, want %s", test.service, role, test.revoke, err, test.want)
		}
		if err, other := schema.CheckPrivileges(t.Context(), owner, capabilities, test.service, role), err; fmt.Sprint(err) != fmt.Sprint(other) {
			t.Errorf("%s by %s without %q: by the owner %v, by the role %v", test.service, role, test.revoke, err, other)
		}
		if test.revoke != "" {
			storetest.Exec(t, owner, "GRANT "+test.revoke+" TO "+test.from)
		}
	}
	checkAnotherSchema(t, owner, roles[schema.Serve])
}

// checkAnotherSchema: the tables may be in the schema that the URL names in search_path, not in public.
func checkAnotherSchema(t *testing.T, owner *pgxpool.Pool, role string) {
	t.Helper()
	storetest.Exec(t, owner, "ALTER SCHEMA public RENAME TO elsewhere")
	config := owner.Config()
	config.ConnConfig.User, config.MaxConns, config.ConnConfig.RuntimeParams["search_path"] = role, 1, `"elsewhere", pg_temp`
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := schema.Ready(t.Context(), pool, capabilities, schema.Serve); err != nil {
		t.Error(err)
	}
	storetest.Exec(t, owner, `REVOKE USAGE ON SCHEMA elsewhere FROM PUBLIC, "`+role+`"`)
	if err := schema.Ready(t.Context(), pool, capabilities, schema.Serve); err == nil || !strings.Contains(err.Error(), "USAGE ON SCHEMA elsewhere") {
		t.Errorf("without the privilege to use the schema: %v", err)
	}
}

// TestReadOnly: a standby, and sessions that are read-only by default, are refused by services and migrations.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	primary := storetest.NewCluster(t)
	standby := primary.Standby(t)
	for _, test := range []struct{ url, want string }{
		{primary.URL(), ""},
		{standby.URL(), "the database server is a standby"},
		{primary.URL() + "&default_transaction_read_only=on", "the database is read-only, because default_transaction_read_only is on"},
	} {
		pool, err := store.Open(t.Context(), test.url, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		_, migrated := schema.Migrate(t.Context(), pool)
		for what, err := range map[string]error{
			"ready": schema.Ready(t.Context(), pool, capabilities, schema.Serve), "writable": schema.Writable(t.Context(), pool), "migrate": migrated,
		} {
			refused, _ := errors.AsType[*schema.ReadOnlyError](err)
			if (refused != nil) != (test.want != "") || refused != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s: %s: got %v, want %q", test.url, what, err, test.want)
			}
		}
	}
}
