package auth

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

// TestCacheIsBounded: a full cache drops some keys, and never one that was just read.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := NewCredentialCache(nil, time.Minute, 1)
	for batch := range 12 {
		var keys []Hash
		read := make(map[Hash]*Credential)
		for i := range 1000 {
			key := Hash(sha256.Sum256(fmt.Append(nil, batch, i)))
			keys, read[key] = append(keys, key), &Credential{Name: fmt.Sprint(i)}
		}
		c.update(1, keys, read)
		_, found := c.Cached(keys)
		for i, one := range found {
			if one == nil || one.Name != fmt.Sprint(i) {
				t.Fatalf("key %d is cached as %v", i, one)
			}
		}
		if n, least := len(c.credentials), min((batch+1)*1000, maxCached/2); n > maxCached || n < least {
			t.Errorf("%d keys are cached after %d, want %d to %d", n, (batch+1)*1000, least, maxCached)
		}
	}
}
