package e2e

import (
	"testing"

	"aiv/store/storetest"
)

// TestUpgradeUnderAProcess: a newer binary's migration is applied while a process serves. It stays ready. A new
// process of the older binary starts only if the migration declares it compatible.
func TestUpgradeUnderAProcess(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	storetest.Exec(t, pool, `
		INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'what_is_to_come', sha256(''))`)
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
