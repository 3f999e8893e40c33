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

// TestReadyPrivileges: the owner, and a role with the privileges of the service, are ready.
func TestReadyPrivileges(t *testing.T) {
	t.Parallel()
	grantRoles(t, storetest.New(t))
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

// TestReadyWithoutPrivileges: the error names the privileges that the role lacks, and what grants them. Citus cannot
// revoke privileges on columns.
func TestReadyWithoutPrivileges(t *testing.T) {
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
}

// TestReadyInAnotherSchema: the tables are in the schema that the URL names in search_path, not in public.
func TestReadyInAnotherSchema(t *testing.T) {
	t.Parallel()
	owner := storetest.Plain(t)
	role := grantRoles(t, owner)[schema.Serve]
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

// TestReadyMigrations: without migrations, and with newer ones, the error is that of the status.
func TestReadyMigrations(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	pool, err := store.Open(t.Context(), url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := schema.Ready(t.Context(), pool, capabilities, schema.Serve); !isPending(err) {
		t.Errorf("without tables: %v", err)
	}
	storetest.Exec(t, pool, `CREATE TABLE schema_migrations (version int, name text, checksum bytea, applied_at timestamptz, oldest_compatible int)`)
	if err := schema.Ready(t.Context(), pool, capabilities, schema.Serve); !isPending(err) {
		t.Errorf("without migrations: %v", err)
	}
	storetest.Exec(t, pool, `DROP TABLE schema_migrations`)
	if _, err := schema.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, pool, `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'future', '')`)
	if _, newer := errors.AsType[*schema.NewerError](schema.Ready(t.Context(), pool, capabilities, schema.Serve)); !newer {
		t.Error("a newer migration is not reported")
	}
}

// TestFirstRelease: the data of release 0.1.0, whose table of the migrations lacks a column, cannot be upgraded.
func TestFirstRelease(t *testing.T) {
	t.Parallel()
	pool := emptyPool(t)
	storetest.Exec(t, pool, `CREATE TABLE schema_migrations (version int PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
		applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
		`INSERT INTO schema_migrations VALUES (1, 'identity', '')`)
	_, statusErr := schema.ReadStatus(t.Context(), pool)
	_, migrateErr := schema.Migrate(t.Context(), pool)
	readyErr := schema.Ready(t.Context(), pool, capabilities, schema.Serve)
	for name, err := range map[string]error{"ReadStatus": statusErr, "Migrate": migrateErr, "Ready": readyErr} {
		if _, ok := errors.AsType[*schema.ChangedError](err); !ok || !strings.HasPrefix(err.Error(), "the table schema_migrations has other columns: ") {
			t.Errorf("%s: got %v, want a *ChangedError", name, err)
		}
	}
}

func isPending(err error) bool {
	_, pending := errors.AsType[*schema.PendingError](err)
	return pending
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
