package auth_test

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"

	"aiv/auth"
)

// FuzzHashKey: a key is accepted exactly if it has the form and the checksum, computed here with big integers; its hash
// is its SHA-256; and no key is accepted that differs from it in one character.
func FuzzHashKey(f *testing.F) {
	for _, k := range knownKeys {
		f.Add(k.key, 10, byte('x'))
	}
	good := knownKeys[2].key
	for _, malformed := range []string{
		"", "\x00", "\xff", "aiv_live_", good[:17], good[:52], good[:57], good + "0", " " + good, good + " ", good[:57] + "\n",
		"aiv_test_" + good[9:], "AIV_LIVE_" + good[9:], good[:52] + "000000", strings.ToLower(good), good[:56] + "\u00e9",
	} {
		f.Add(malformed, 0, byte(0))
	}
	f.Fuzz(func(t *testing.T, key string, index int, other byte) {
		hash, err := auth.HashKey(key)
		const start, length = "aiv_live_", 58
		genuine := len(key) == length && key[:len(start)] == start &&
			key[length-6:] == base62Of(big.NewInt(int64(crc32.ChecksumIEEE([]byte(key[:length-6])))), 6)
		if genuine != (err == nil) {
			t.Fatalf("%q: got %v, want accepted: %v", key, err, genuine)
		}
		if err != nil {
			if hash != (auth.Hash{}) || err != auth.ErrMalformedKey { // which does not repeat the key
				t.Errorf("%q: got %x, %v", key, hash, err)
			}
			return
		}
		if hash != sha256.Sum256([]byte(key)) {
			t.Errorf("%q: got %x", key, hash)
		}
		changed := []byte(key)
		if index = ((index % length) + length) % length; changed[index] != other {
			changed[index] = other
			if _, err := auth.HashKey(string(changed)); err == nil {
				t.Errorf("%q and %q are both accepted", key, changed)
			}
		}
	})
}
