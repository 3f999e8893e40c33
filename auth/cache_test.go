package auth_test

import (
	"testing"
	"time"

	"aiv/auth"
)

// TestCacheOfOneRevision: what a cache contains was read at its revision. A key that is not valid any more is dropped
// when it is read again, or when another key is read; an unknown key drops nothing.
func TestCacheOfOneRevision(t *testing.T) {
	o := newOffice(t)
	first, second := o.issue(auth.Terms{}), o.issue(auth.Terms{})
	var keys []auth.Hash // the first, the second and an unknown one
	for _, key := range []string{first.Key, second.Key, knownKeys[0]} {
		hash, err := auth.HashKey(key)
		must(t, err)
		keys = append(keys, hash)
	}
	c := auth.NewCredentialCache(o.Pool, time.Minute, 1)
	var revision int64
	step := func(name string, sameRevision, firstCached, secondCached bool, read ...auth.Hash) {
		t.Helper()
		o.done(c.Read(t.Context(), read))
		now, found := c.Cached(keys)
		equal(t, name+": the revision is the same, and the keys are cached", []bool{sameRevision, firstCached, secondCached},
			[]bool{now == revision, found[0] != nil, found[1] != nil})
		revision = now
	}
	step("both", false, true, true, keys[:2]...)
	step("an unknown key", true, true, true, keys[2])
	o.key(o.RevokeKey(t.Context(), first.ID))
	step("the other, after the first is revoked", false, false, true, keys[1])
	o.key(o.RevokeKey(t.Context(), second.ID))
	step("a revoked key", true, false, false, keys[1])
}
