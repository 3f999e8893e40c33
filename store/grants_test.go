package store_test

import (
	"errors"
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// newRole creates a role whose name no other test uses, as roles belong to the whole server, and returns it quoted.
func newRole(t *testing.T, pool *pgxpool.Pool, suffix string) (name, quoted string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT current_database() || $1`, suffix).Scan(&name); err != nil {
		t.Fatal(err)
	}
	quoted = pgx.Identifier{name}.Sanitize()
	execAll(t, pool, "CREATE ROLE "+quoted+" LOGIN") // as Citus connects to other servers as the role
	return name, quoted
}

func execAll(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// Where the role could create a function that the owner's statements call, nothing is granted, and the error names the
// statement that prevents it.
func TestGrantRefusesSchemasWhereTheRoleMayCreate(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := newRole(t, pool, "_serve")
	_, group := newRole(t, pool, "_group")
	execAll(t, pool, "GRANT "+group+" TO "+quoted)
	for _, test := range []struct{ grant, revoke, want string }{
		{"GRANT CREATE ON SCHEMA public TO PUBLIC", "REVOKE CREATE ON SCHEMA public FROM PUBLIC", `REVOKE CREATE ON SCHEMA "public" FROM PUBLIC`},
		{"GRANT CREATE ON SCHEMA public TO " + group, "REVOKE CREATE ON SCHEMA public FROM " + group, `REVOKE CREATE ON SCHEMA "public" FROM that role`},
	} {
		execAll(t, pool, test.grant)
		for _, service := range []store.Service{store.Serve, store.Dispatch} {
			if err := store.Grant(t.Context(), pool, service, role, "test"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: after %s: got %v, want %s", service, test.grant, err, test.want)
			}
		}
		var granted bool
		if err := pool.QueryRow(t.Context(), `SELECT has_table_privilege($1, 'models', 'SELECT')`, role).Scan(&granted); err != nil || granted {
			t.Errorf("after %s: the refused role was granted rights: %v, %v", test.grant, granted, err)
		}
		execAll(t, pool, test.revoke)
	}
	// A right of the role itself is revoked like its others.
	execAll(t, pool, "GRANT CREATE ON SCHEMA public TO "+quoted)
	if err := store.Grant(t.Context(), pool, store.Serve, role, "test"); err != nil {
		t.Error(err)
	}
}

// TestGrantDispatch checks that the role of one service does not keep the rights of the other.
func TestGrantDispatch(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	role, quoted := newRole(t, pool, "_dispatch")
	for _, service := range []store.Service{store.Serve, store.Dispatch} {
		if err := store.Grant(t.Context(), pool, service, role, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for sql, allowed := range map[string]bool{
		`SELECT FROM provider_dependencies`:              true,
		`SELECT FROM measurement_jobs`:                   true,
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
