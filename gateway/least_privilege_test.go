package gateway

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

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

// TestLeastPrivilege: the roles of aiv serve and aiv dispatch can do nothing that these services do not do. Package
// schema tests that a grant revokes all earlier rights.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	neither := []string{
		`ALTER TABLE plans ADD COLUMN x text`, `DROP TABLE plans`, `CREATE TABLE mine (id integer)`, `CREATE INDEX ON measurement_runs (id)`,
		`ALTER TABLE measurement_runs DISABLE TRIGGER ALL`, `TRUNCATE job_queue`, `TRUNCATE idempotency_records`,
		`TRUNCATE api_rate_limit_buckets`, `TRUNCATE brands`, `SELECT FROM audit_log`, `DELETE FROM audit_log`,
		`UPDATE plans SET features = '{}'`, `UPDATE accounts SET plan_code = 'x'`, `UPDATE credentials SET revoked_at = NULL`,
		`UPDATE models SET status = 'active'`, `UPDATE provider_dependencies SET met = true`, `UPDATE shared_secrets SET secret = ''`,
		`DELETE FROM usage_records`, `DELETE FROM measurement_runs`, `DELETE FROM credentials`, `DELETE FROM brands`,
		`SET ROLE aiv`, `CREATE ROLE other`, `COPY plans TO PROGRAM 'true'`, `SELECT pg_read_file('/etc/passwd')`,
	}
	for service, not := range map[schema.Service][]string{
		schema.Serve: {
			`SELECT jobs FROM usage_records`, `SELECT ordinal FROM measurement_jobs`,
			`INSERT INTO audit_log (actor, action, subject) VALUES ('', '', '')`,
			`INSERT INTO accounts (id, name, plan_code) VALUES (gen_random_uuid(), 'x', 'golden')`,
			`INSERT INTO schema_migrations SELECT * FROM schema_migrations`,
			`UPDATE usage_records SET jobs = 1`, `UPDATE measurement_jobs SET ordinal = 1`, `UPDATE measurement_runs SET status = 'canceled'`,
			`UPDATE credentials SET rate_limit_per_minute = 1000000`, `UPDATE idempotency_records SET answer = ''`,
			`UPDATE alerts SET title = 'open'`, `UPDATE catalog_revision SET revision = 1`, `UPDATE identity_revision SET revision = 1`,
			`UPDATE visibility_recounts SET revision = 1`, `DELETE FROM brand_revisions`, `DELETE FROM visibility_facts`,
		},
		schema.Dispatch: {
			`SELECT key_hash FROM credentials`, `SELECT cancel_run(gen_random_uuid(), gen_random_uuid())`,
			`INSERT INTO workers (id, name, token_hash) VALUES (gen_random_uuid(), 'w', sha256(''))`,
			`UPDATE workers SET revoked_at = NULL`, `UPDATE workers SET token_hash = sha256('')`,
			`UPDATE provider_settings SET in_flight = NULL`, `UPDATE provider_pauses SET note = ''`, `UPDATE schedules SET name = ''`,
			`UPDATE measurement_runs SET total_jobs = 1`, `UPDATE measurement_runs SET account_id = id`,
			`UPDATE job_results SET error_code = 'c'`, `UPDATE webhook_master SET fingerprint = ''`, `UPDATE events SET data = '{}'`,
			`DELETE FROM idempotency_records`, `DELETE FROM schedules`, `DELETE FROM alerts`, `DELETE FROM recommendations`,
			`DELETE FROM provider_pauses`, `DELETE FROM job_results`, `DELETE FROM questions`,
		},
	} {
		pool := f.as(t, service)
		for _, sql := range slices.Concat(neither, not) {
			ofServe := service == schema.Serve && strings.HasPrefix(sql, "UPDATE measurement_runs")
			if storetest.OnCitus() && (ofServe || strings.HasSuffix(sql, "account_id = id")) {
				continue // the role of aiv serve cancels runs itself there, and no account of a row can be changed
			}
			_, err := pool.Exec(t.Context(), sql)
			if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
				t.Errorf("%s: %s: got %v, want insufficient_privilege", service, sql, err)
			}
		}
	}
}
