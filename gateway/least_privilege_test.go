package gateway_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// asServe has the gateway use a role with exactly the rights of `aiv migrate -grant`. All golden files run with it.
func (f *fixture) asServe(t *testing.T) *fixture {
	t.Helper()
	f.serves = f.as(t, schema.Serve)
	return f
}

// as returns a pool of a new role that has the rights of a service.
func (f *fixture) as(t *testing.T, service schema.Service) *pgxpool.Pool {
	t.Helper()
	role, _ := storetest.NewRole(t, f.pool, "_"+string(service))
	must(t, schema.Grant(t.Context(), f.pool, capability.All, service, role, "test"))
	u, err := url.Parse(f.url)
	must(t, err)
	query := u.Query()
	query.Set("user", role)
	u.RawQuery = query.Encode()
	pool, err := store.OpenHot(t.Context(), u.String(), 8)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestLeastPrivilege: the role of aiv serve has no other rights, whatever it was granted before.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	f := newFixture(t).asServe(t)
	var role string
	must(t, f.serves.QueryRow(t.Context(), `SELECT current_user`).Scan(&role))
	f.exec(t, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+pgx.Identifier{role}.Sanitize())
	must(t, schema.Grant(t.Context(), f.pool, capability.All, schema.Serve, role, "test"))

	if status, err := schema.ReadStatus(t.Context(), f.serves); err != nil || status.Err() != nil {
		t.Errorf("reading the migration status: %v, %v", err, status.Err())
	}
	for _, sql := range []string{
		`ALTER TABLE plans ADD COLUMN x text`, `DROP TABLE plans`, `CREATE INDEX ON measurement_runs (id)`,
		`ALTER TABLE measurement_runs DISABLE TRIGGER ALL`,
		`TRUNCATE idempotency_records`, `TRUNCATE api_rate_limit_buckets`, `TRUNCATE brands`,
		`SELECT FROM audit_log`, `SELECT jobs FROM usage_records`, `SELECT ordinal FROM measurement_jobs`,
		`INSERT INTO audit_log (actor, action, subject) VALUES ('', '', '')`,
		`INSERT INTO accounts (id, name, plan_code) VALUES (gen_random_uuid(), 'x', 'golden')`,
		`INSERT INTO schema_migrations SELECT * FROM schema_migrations`,
		`UPDATE usage_records SET jobs = 1`, `UPDATE measurement_jobs SET ordinal = 1`, `UPDATE plans SET features = '{}'`,
		`UPDATE measurement_runs SET status = 'canceled'`, `UPDATE accounts SET plan_code = 'x'`,
		`UPDATE credentials SET revoked_at = NULL`,
		`UPDATE credentials SET rate_limit_per_minute = 1000000`, `UPDATE idempotency_records SET answer = ''`,
		`UPDATE models SET status = 'active'`, `UPDATE provider_dependencies SET met = true`,
		`UPDATE alerts SET title = 'open'`, `UPDATE catalog_revision SET revision = 1`,
		`UPDATE identity_revision SET revision = 1`,
		`UPDATE visibility_recounts SET revision = 1`, `UPDATE shared_secrets SET secret = ''`,
		`DELETE FROM usage_records`, `DELETE FROM measurement_runs`, `DELETE FROM credentials`, `DELETE FROM brands`,
		`DELETE FROM brand_revisions`, `DELETE FROM visibility_facts`,
		`SET ROLE aiv`, `CREATE ROLE other`, `COPY plans TO PROGRAM 'true'`, `SELECT pg_read_file('/etc/passwd')`,
	} {
		if storetest.OnCitus() && strings.HasPrefix(sql, "UPDATE measurement_runs") {
			continue // the role cancels runs itself there
		}
		_, err := f.serves.Exec(t.Context(), sql)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
			t.Errorf("%s: got %v, want insufficient_privilege", sql, err)
		}
	}
	for role, fault := range map[string]string{"no_such_role": "no role", "aiv": "superuser", `x"; DROP TABLE plans; --`: "no role"} {
		err := schema.Grant(t.Context(), f.pool, capability.All, schema.Serve, role, "test")
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: got %v, want %s", role, err, fault)
		}
	}
}
