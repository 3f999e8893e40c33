package auth_test

import (
	"testing"
	"time"

	"aiv/auth"
)

// TestCacheOfOneRevision: what a cache contains was read at its revision. A key that is not valid any more is dropped
// when it is read again, or when another key is read; an unknown key drops nothing.
func TestCacheOfOneRevision(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first, second := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	keys := []auth.Hash{hash(t, first.Key), hash(t, second.Key)}
	c := auth.NewCredentialCache(o.Pool, time.Minute, 1)
	var revision int64
	step := func(name string, sameRevision, firstCached, secondCached bool, read ...auth.Hash) {
		t.Helper()
		_, err := c.Read(t.Context(), read)
		must(t, err)
		now, found := c.Cached(keys)
		if (now == revision) != sameRevision || (found[0] != nil) != firstCached || (found[1] != nil) != secondCached {
			t.Errorf("%s: revision %d after %d, cached are %v", name, now, revision, found)
		}
		revision = now
	}
	step("both", false, true, true, keys...)
	step("an unknown key", true, true, true, hash(t, knownKeys[0].key))
	must(t, ignore(o.RevokeKey(t.Context(), first.ID)))
	step("the other, after the first is revoked", false, false, true, keys[1])
	must(t, ignore(o.RevokeKey(t.Context(), second.ID)))
	step("a revoked key", true, false, false, keys[1])
}
