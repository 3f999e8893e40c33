package e2e

import (
	"strings"
	"testing"
)

// TestMigrateGrant: aiv serve works as the role that aiv migrate -grant has made for it.
func TestMigrateGrant(t *testing.T) {
	t.Parallel()
	url, pool := database(t)
	_, key := customer(t, url, 1000)
	var role string
	if err := pool.QueryRow(t.Context(), `SELECT 'serve-' || current_database()`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `CREATE ROLE "`+role+`" LOGIN`); err != nil {
		t.Fatal(err)
	}
	if got := cli[struct{ Granted string }](t, url, "migrate", "-grant", role).Granted; got != role {
		t.Errorf("granted to %q", got)
	}
	p := startServe(t, strings.Replace(url, "user=aiv", "user="+role, 1))
	a, err := p.do(t.Context(), "POST", "", key.Key, "k", testRun)
	if err != nil || a.status != 202 {
		t.Errorf("got %d %s, %v", a.status, a.body, err)
	}
	var as string
	if err := pool.QueryRow(t.Context(), `SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND usename <> 'aiv'`).Scan(&as); err != nil || as != role {
		t.Errorf("served as %q, %v", as, err)
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"migrate", "-database-url", url, "-grant", "no-such-role"}, 1, "there is no role"},
		{[]string{"migrate", "-database-url", url, "-grant", "aiv"}, 1, "superuser"},
		{[]string{"migrate", "-database-url", url, "-status", "-grant", role}, 2, "give one of them"},
		{[]string{"migrate", "-database-url", url, "-grant", role, "-grant-dispatch", role}, 2, "give two roles"},
		{[]string{"migrate", "-database-url", url, "-grant-dispatch", role}, 0, ""},
	} {
		if code, _, stderr := aiv(t.Context(), test.args...); code != test.code || !strings.Contains(stderr, test.says) {
			t.Errorf("%v: exit %d: %s", test.args[3:], code, stderr)
		}
	}
}
