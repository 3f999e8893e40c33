package auth_test

import (
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
)

// TestCacheOfOneRevision: what a cache contains was read at its revision. A key that is not valid any more is dropped
// when it is read again, or when another key is read; an unknown key drops nothing.
func TestCacheOfOneRevision(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	hash := func(key string) auth.Hash {
		h, err := auth.HashKey(key)
		must(t, err)
		return h
	}
	first, second := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	keys := []auth.Hash{hash(first.Key), hash(second.Key)}
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
	revoke := func(id store.ID) {
		t.Helper()
		_, err := o.RevokeKey(t.Context(), id)
		must(t, err)
	}
	step("both", false, true, true, keys...)
	step("an unknown key", true, true, true, hash(knownKeys[0].key))
	revoke(first.ID)
	step("the other, after the first is revoked", false, false, true, keys[1])
	revoke(second.ID)
	step("a revoked key", true, false, false, keys[1])
}
