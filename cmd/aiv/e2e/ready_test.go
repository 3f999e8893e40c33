package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestRightsOfTheRole: a service does not start as the role of the other one. aiv serve works as the role that aiv
// migrate -grant has made for it, and is not ready when that role loses a right.
func TestRightsOfTheRole(t *testing.T) {
	t.Parallel()
	url, pool := database(t)
	serve, quoted := storetest.NewRole(t, pool, "-serve")
	dispatch, _ := storetest.NewRole(t, pool, "-dispatch")
	cli[any](t, url, "migrate", "-grant", serve, "-grant-dispatch", dispatch)
	as := func(role string) string { return strings.Replace(url, "user=aiv", "user="+role, 1) }
	refuses(t, as(dispatch), "lacks privileges that aiv serve needs: SELECT ON credentials, SELECT ON identity_revision, ",
		onFreePorts("serve")...)
	refuses(t, as(serve), "lacks privileges that aiv dispatch needs: ", onFreePorts("dispatch")...)
	refuses(t, as(serve), "permission denied for table provider_settings (SQLSTATE 42501); "+
		"run the command as the owner of the tables\n", "status")
	p := startServe(t, as(serve))
	p.hasMetrics(t, "aiv_database_up 1") // the role may read what /metrics reports
	for _, step := range []struct {
		sql    string
		status int
		text   string
	}{
		{`REVOKE SELECT ON plans FROM ` + quoted, 503, "SELECT ON plans"},
		{`REVOKE SELECT ON schema_migrations FROM ` + quoted, 503, "SELECT ON schema_migrations"},
		{`GRANT SELECT ON plans, schema_migrations TO ` + quoted, 200, "ok"},
	} {
		storetest.Exec(t, pool, step.sql)
		p.isReady(t, "after "+step.sql, step.status, step.text)
	}
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
	if code, stdout, stderr := aiv(t.Context(), "status", "-database-url", c.URL()); code != 1 || !strings.Contains(stdout, ", READ-ONLY; database aiv at "+c.Dir) ||
		!strings.Contains(stdout, "\nqueue\t") || !strings.Contains(stderr, "the database server is a standby") {
		t.Errorf("aiv status: exit %d: %s%s", code, stdout, stderr)
	}
	c.Exec(t, "postgres", "SELECT pg_promote()")
	p.isReady(t, "of the promoted server", 200, "ok")
}
