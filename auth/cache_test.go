package auth_test

import (
	"crypto/sha256"
	"fmt"
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

// TestCacheIsBounded: a full cache drops some keys and still finds them in the database.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	const keys, atATime, most = 11_000, 1000, 10_000
	o := newOffice(t)
	_, err := o.Pool.Exec(t.Context(), `
		INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
		SELECT gen_random_uuid(), $1, i, 'aiv_live_00000000', sha256(i::text::bytea), '{}' FROM generate_series(0, $2 - 1) i`, o.account.ID, keys)
	must(t, err)
	hashes := make([]auth.Hash, keys)
	for i := range hashes {
		hashes[i] = sha256.Sum256(fmt.Append(nil, i))
	}
	m := auth.NewCredentialCache(o.Pool, time.Minute, 1)
	for i := 0; i < keys; i += atATime {
		found, err := m.Read(t.Context(), hashes[i:i+atATime])
		must(t, err)
		for k, c := range found {
			if c == nil || c.Name != fmt.Sprint(i+k) {
				t.Fatalf("key %d is %v", i+k, c)
			}
		}
	}
	cached := 0
	_, found := m.Cached(hashes)
	for i, c := range found {
		if c != nil {
			cached++
			continue
		}
		if c, err := m.Find(t.Context(), hashes[i]); err != nil || c == nil || c.Name != fmt.Sprint(i) {
			t.Fatalf("key %d is %v, %v", i, c, err)
		}
	}
	if cached > most || cached < most/4 {
		t.Errorf("%d of %d keys are cached", cached, keys)
	}
}
