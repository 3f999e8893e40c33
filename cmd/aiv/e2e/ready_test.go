package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestRightsOfTheRole: a service does not start as the role of the other one, or as a role that was granted before an
// upgrade. aiv serve works as the role that aiv migrate -grant has made for it, and is not ready when that role loses a
// right.
func TestRightsOfTheRole(t *testing.T) {
	t.Parallel()
	url, pool := database(t)
	exec := func(sql string) { storetest.Exec(t, pool, sql) }
	name := pool.Config().ConnConfig.Database
	serve, dispatch := "serving-"+name, "dispatching-"+name
	exec(`CREATE ROLE "` + serve + `" LOGIN; CREATE ROLE "` + dispatch + `" LOGIN`)
	cli[any](t, url, "migrate", "-grant", serve, "-grant-dispatch", dispatch)
	as := func(role string) string { return strings.Replace(url, "user=aiv", "user="+role, 1) }
	refused := func(command, role, want string) {
		t.Helper()
		args := []string{command, "-database-url", as(role)}
		if command != "status" {
			args = append(args, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0")
		}
		if code, _, stderr := aiv(t.Context(), args...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("aiv %s as %s: exit %d: %s; want %s", command, role, code, stderr, want)
		}
	}
	refused("serve", dispatch, "lacks privileges that aiv serve needs: SELECT ON credentials, SELECT ON identity_revision, ")
	refused("dispatch", serve, "lacks privileges that aiv dispatch needs: ")
	exec(`REVOKE ALL ON events FROM "` + serve + `"`)
	refused("serve", serve, "lacks privileges that aiv serve needs: SELECT ON events, INSERT ON events; run `aiv migrate -grant "+serve+"` as the owner of the tables\n")

	cli[any](t, url, "migrate", "-grant", serve)
	refused("status", serve, "permission denied for table provider_settings (SQLSTATE 42501); run the command as the owner of the tables\n")
	p := startServe(t, as(serve))
	if _, page := p.asAdmin(t, "GET", "/metrics", ""); readExposition(t, page).values["aiv_database_up"] != 1 {
		t.Error("the role may not read what /metrics reports")
	}
	for _, step := range []struct {
		sql    string
		status int
		text   string
	}{
		{`REVOKE SELECT ON plans FROM "` + serve + `"`, 503, "SELECT ON plans"},
		{`REVOKE SELECT ON schema_migrations FROM "` + serve + `"`, 503, "SELECT ON schema_migrations"},
		{`GRANT SELECT ON plans, schema_migrations TO "` + serve + `"`, 200, "ok"},
	} {
		exec(step.sql)
		if status, text := p.asAdmin(t, "GET", "/readyz", ""); status != step.status || !strings.Contains(text, step.text) {
			t.Errorf("/readyz after %s: %d %s; want %d %s", step.sql, status, text, step.status, step.text)
		}
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
	ready := func() string {
		_, text := p.asAdmin(t, "GET", "/readyz", "")
		return text
	}
	wait(t, "the demoted server", "not ready: the database server is a standby", ready)
	for _, args := range [][]string{{"serve"}, {"serve", "-migrate"}, {"dispatch"}, {"migrate"}} {
		code, _, stderr := aiv(t.Context(), append(args, "-database-url", c.URL())...)
		if code != 1 || strings.Count(stderr, "\n") > 1 || !strings.Contains(stderr, "the database server is a standby, which is read-only; name the primary") {
			t.Errorf("aiv %v: exit %d: %s", args, code, stderr)
		}
	}
	if code, stdout, stderr := aiv(t.Context(), "status", "-database-url", c.URL()); code != 1 || !strings.Contains(stdout, ", READ-ONLY; database aiv at "+c.Dir) ||
		!strings.Contains(stdout, "\nqueue\t") || !strings.Contains(stderr, "the database server is a standby") {
		t.Errorf("aiv status: exit %d: %s%s", code, stdout, stderr)
	}
	c.Exec(t, "postgres", "SELECT pg_promote()")
	wait(t, "the promoted server", "ok\n", ready)
}
