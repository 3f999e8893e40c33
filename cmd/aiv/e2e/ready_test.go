package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestRightsOfTheRole: a service does not start as the role of the other one. aiv serve and aiv dispatch work as the
// roles that aiv migrate has made for them, and aiv serve is not ready when its role loses a right. The golden files
// send each request to services with such roles, and TestLeastPrivilege of gateway shows what these roles cannot do.
func TestRightsOfTheRole(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	serve, quoted := storetest.NewRole(t, pool, "-serve")
	dispatch, _ := storetest.NewRole(t, pool, "-dispatch")
	cli[any](t, url, "migrate", "-grant", serve, "-grant-dispatch", dispatch)
	as := func(role string) string { return strings.Replace(url, "user=aiv", "user="+role, 1) }
	refuses(t, as(dispatch), "lacks privileges that aiv serve needs: SELECT ON credentials, SELECT ON identity_revision, ",
		onFreePorts("serve")...)
	refuses(t, as(serve), "lacks privileges that aiv dispatch needs: ", onFreePorts("dispatch")...)
	cli[any](t, url, "providers", "set", "p", "-per-minute", "1000")
	p, d := startServe(t, as(serve)), startDispatch(t, as(dispatch), "-answers-kept", "400d")
	run := p.order(t, key.Key, "roles")
	w := newWorkerClient(t, url, d)
	w.claims(t, 10, 6) // which come back when their leases end
	endLeases(t, pool)
	storetest.Eventually(t, "the run is completed", func() bool {
		if jobs, err := w.claim(10, 0); err == nil && len(jobs) > 0 {
			w.settles(t, jobs)
		}
		return strings.Contains(p.get(t, "/v1/runs/"+run, key.Key).body, `"status":"completed"`)
	})
	p.hasMetrics(t, "aiv_database_up 1") // the roles may read what /metrics reports
	d.hasMetrics(t, "aiv_database_up 1", `aiv_jobs_waiting{provider="p"} 0`, "aiv_webhook_pending 0")
	if stops(t, d); strings.Contains(d.log.String(), "permission denied") {
		t.Error("aiv dispatch lacks a privilege")
	}

	storetest.Exec(t, pool, `REVOKE SELECT ON plans FROM `+quoted)
	p.isReady(t, "of a role without a privilege", 503, "SELECT ON plans")
	storetest.Exec(t, pool, `GRANT SELECT ON plans TO `+quoted)
	p.isReady(t, "of a role with all privileges", 200, "ok")
}

// TestDemotedPrimary: a service whose server has become a standby is not ready until that is promoted, and none starts
// on it.
func TestDemotedPrimary(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t)
	p := startServe(t, c.URL())
	c.Stop()
	must(t, os.WriteFile(filepath.Join(c.Data(), "standby.signal"), nil, 0o644))
	c.Start(t)
	p.isReady(t, "of the demoted server", 503, "not ready: the database server is a standby")
	for _, command := range [][]string{{"serve"}, {"serve", "-migrate"}, {"dispatch"}, {"migrate"}} {
		refuses(t, c.URL(), "the database server is a standby, which is read-only; name the primary", command...)
	}
	code, stdout, stderr := aiv(t.Context(), "status", "-database-url", c.URL())
	if code != 1 || !strings.Contains(stdout, ", READ-ONLY; database aiv at ") {
		t.Errorf("aiv status: exit %d: %s%s", code, stdout, stderr)
	}
	c.Exec(t, "postgres", "SELECT pg_promote()")
	p.isReady(t, "of the promoted server", 200, "ok")
}

// TestUpgradeUnderAProcess: a newer binary's migration is applied while a process serves. It stays ready. A new
// process of the older binary starts only if the migration declares it compatible.
func TestUpgradeUnderAProcess(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	storetest.Exec(t, pool, `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'what_is_to_come', sha256(''))`)
	p.isReady(t, "after the migration", 200, "ok")
	p.serves(t, key.Key)
	refuses(t, url, "", onFreePorts("serve")...)
	storetest.Exec(t, pool, `
		UPDATE schema_migrations SET oldest_compatible = (SELECT max(version) FROM schema_migrations WHERE version < 9999) WHERE version = 9999`)
	for _, older := range []*process{startServe(t, url), startDispatch(t, url)} {
		older.isReady(t, "of the older binary on a compatible schema", 200, "ok")
		older.kill()
	}
	storetest.Exec(t, pool, `
		CREATE TABLE applied AS SELECT * FROM schema_migrations WHERE version = 2;
		DELETE FROM schema_migrations WHERE version IN (2, 9999)`)
	p.isReady(t, "without a migration", 503, "")
	storetest.Exec(t, pool, `INSERT INTO schema_migrations SELECT * FROM applied; DROP TABLE applied`)
}
