package e2e

import (
	"strings"
	"testing"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestMigrateGrantDispatch: aiv dispatch does all of its work as the role that aiv migrate -grant-dispatch has made for
// it, and that role can do nothing else.
func TestMigrateGrantDispatch(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	role, _ := storetest.NewRole(t, pool, "-dispatch")
	cli[any](t, url, "migrate", "-grant-dispatch", role)
	cli[any](t, url, "providers", "set", "p", "-per-minute", "1000")
	serve := startServe(t, url)
	as := strings.Replace(url, "user=aiv", "user="+role, 1)
	dispatch := startDispatch(t, as, "-answers-kept", "400d")
	run := serve.order(t, key.Key, "roles")
	w := &workerClient{dispatch.base, newWorker(t, url).Token}
	jobs := w.claims(t, 10, 6)
	for i, outcome := range []map[string]any{
		{"outcome": "failed", "error": map[string]any{"code": "c", "message": ""}}, {"outcome": "released"}, {"outcome": "throttled", "after_seconds": 1},
		{"outcome": "retry", "error": map[string]any{"code": "c", "message": ""}, "after_seconds": 1},
	} {
		outcome["id"], outcome["attempt"] = jobs[i].ID, jobs[i].Attempt
		if err := w.call(t.Context(), "/settle", map[string]any{"jobs": []any{outcome}}, &[]any{}); err != nil {
			t.Error(err)
		}
	}
	w.settles(t, jobs[4:])
	storetest.Exec(t, pool, `UPDATE job_leases SET until = now()`)
	wait(t, "the run", `"status":"partial"`, func() string {
		if jobs, err := w.claim(10, 0); err == nil && len(jobs) > 0 {
			w.settle(t.Context(), jobs)
		}
		return serve.get(t, "/v1/runs/"+run, key.Key).body
	})
	dispatch.hasMetrics(t, "aiv_database_up 1", `aiv_jobs_waiting{provider="p"} 0`, "aiv_webhook_pending 0")
	if stops(t, dispatch); strings.Contains(dispatch.log.String(), "permission denied") {
		t.Error("dispatch lacks a privilege")
	}

	mine := open(t, as)
	for _, sql := range []string{
		`SELECT key_hash FROM credentials`, `UPDATE credentials SET revoked_at = NULL`, `SELECT FROM audit_log`, `DELETE FROM idempotency_records`,
		`UPDATE schedules SET name = ''`, `DELETE FROM schedules`, `DELETE FROM alerts`, `DELETE FROM recommendations`, `UPDATE plans SET features = '{}'`,
		`UPDATE accounts SET plan_code = ''`, `INSERT INTO workers (id, name, token_hash) VALUES (gen_random_uuid(), 'w', sha256(''))`,
		`UPDATE workers SET revoked_at = NULL`, `UPDATE workers SET token_hash = sha256('')`, `UPDATE provider_settings SET in_flight = NULL`,
		`UPDATE provider_pauses SET note = ''`, `DELETE FROM provider_pauses`, `DELETE FROM audit_log`,
		`UPDATE provider_dependencies SET met = true`, `DELETE FROM measurement_runs`,
		`UPDATE measurement_runs SET total_jobs = 1`, `UPDATE measurement_runs SET account_id = id`, `DELETE FROM job_results`,
		`UPDATE job_results SET error_code = 'c'`, `UPDATE models SET status = 'active'`, `DELETE FROM questions`, `TRUNCATE job_queue`,
		`UPDATE shared_secrets SET secret = ''`, `UPDATE webhook_master SET fingerprint = ''`, `UPDATE events SET data = '{}'`, `DROP TABLE job_queue`,
		`CREATE TABLE mine (id integer)`, `SELECT cancel_run(gen_random_uuid(), gen_random_uuid())`, `DELETE FROM usage_records`,
	} {
		_, err := mine.Exec(t.Context(), sql)
		// Citus never changes the account of a row.
		if e, ok := err.(*pgconn.PgError); !ok || e.Code != "42501" && !(storetest.OnCitus() && e.Code == "0A000") {
			t.Errorf("%s: got %v, want permission denied", sql, err)
		}
	}
}
