package e2e

import (
	"testing"

	"aiv/store/storetest"
)

// TestUpgradeUnderAProcess: a newer binary's migration is applied while a process serves. It stays ready. A new
// process of the older binary starts only if the migration declares it compatible.
func TestUpgradeUnderAProcess(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 1000)
	p := startServe(t, url)
	storetest.Exec(t, pool, `
		INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'what_is_to_come', sha256(''))`)
	if status, text := p.asAdmin(t, "GET", "/readyz", ""); status != 200 {
		t.Errorf("the process is not ready any more: %d %s", status, text)
	}
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if code, _, stderr := aiv(t.Context(), "serve", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-database-url", url); code != 1 {
		t.Errorf("the older binary starts: %d %s", code, stderr)
	}
	storetest.Exec(t, pool, `
		UPDATE schema_migrations SET oldest_compatible = (SELECT max(version) FROM schema_migrations WHERE version < 9999) WHERE version = 9999`)
	for _, older := range []*process{startServe(t, url), startDispatch(t, url)} {
		if status, text := older.asAdmin(t, "GET", "/readyz", ""); status != 200 {
			t.Errorf("the older binary is not ready on a compatible schema: %d %s", status, text)
		}
		older.kill()
	}
	storetest.Exec(t, pool, `
		CREATE TABLE applied AS SELECT * FROM schema_migrations WHERE version = 2;
		DELETE FROM schema_migrations WHERE version IN (2, 9999)`)
	if status, text := p.asAdmin(t, "GET", "/readyz", ""); status != 503 {
		t.Errorf("with a migration missing: %d %s", status, text)
	}
	storetest.Exec(t, pool, `INSERT INTO schema_migrations SELECT * FROM applied; DROP TABLE applied`)
}
