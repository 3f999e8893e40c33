package e2e

import (
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestNothingContainsARawKey looks for every key that was used, without its public prefix, in each row of each table,
// in the log and in the metrics.
func TestNothingContainsARawKey(t *testing.T) {
	t.Parallel()
	url, pool, account, key := databaseOfCustomer(t, 5)
	p := startServe(t, url)
	rotated := cli[madeKey](t, url, "keys", "rotate", key.ID)
	revoked := newKey(t, url, account, 5)
	cli[any](t, url, "keys", "revoke", revoked.ID)
	keys := []string{key.Key, rotated.Key, revoked.Key}
	for _, k := range keys {
		for range 7 { // beyond the limit, too
			p.get(t, "?path=/v1/me", k)
		}
		p.get(t, "?path=/v1/me&api_key="+k, "aiv_live_wrong")
		p.get(t, "?path=/v1/"+k, k)
		p.get(t, "/"+k, k)
		p.do(t.Context(), "POST", "", k, k[9:], strings.Replace(testRun, `"m"`, `"`+k+`"`, 1))
	}
	_, metrics := p.asAdmin(t, "GET", "/metrics", "")
	for _, k := range keys {
		secret := k[len("aiv_live_")+8:]
		if tables := storetest.TablesWith(t, pool, secret); tables != nil {
			t.Errorf("the database has a key in %v", tables)
		}
		if strings.Contains(p.log.String(), secret) || strings.Contains(metrics, secret) {
			t.Error("the log or the metrics have a key")
		}
	}
}
