package auth_test

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"unicode"

	"aiv/auth"
	"aiv/store/storetest"
)

// The keys of 32 zero bytes, of 32 bytes 0xff, of the bytes 0 to 31, and one whose checksum begins with 0; computed by
// Python's zlib.crc32.
var knownKeys = []string{
	"aiv_live_00000000000000000000000000000000000000000003GcTia",
	"aiv_live_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp10TV59c",
	"aiv_live_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf2v5ioy",
	"aiv_live_000000000000000000000000000000000000000003300MBDd",
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// swapCase converts from base62 of [big.Int], which has lower-case letters before upper-case ones, to the base62 of keys.
func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// FuzzHashKey: a key is accepted exactly if it has the form and the checksum, computed here with big integers; its hash
// is its SHA-256; and the checksum detects any wrong character and any two adjacent characters that are exchanged.
func FuzzHashKey(f *testing.F) {
	for _, k := range knownKeys {
		f.Add(k, 10, byte('x'))
	}
	good := knownKeys[2]
	for i := range good {
		f.Add(good, i, byte('-'))
	}
	for _, malformed := range []string{
		"", "\x00", "\xff", "aiv_live_", good[:17], good[:52], good[:57], good + "0", " " + good, good + " ",
		good[:57] + "\n", "aiv_test_" + good[9:], "AIV_LIVE_" + good[9:], good[:52] + "000000", strings.ToLower(good),
		good[:56] + "\u00e9",
	} {
		f.Add(malformed, 0, byte(0))
	}
	f.Fuzz(func(t *testing.T, key string, index int, other byte) {
		hash, err := auth.HashKey(key)
		const start, length = "aiv_live_", 58
		genuine := len(key) == length && key[:len(start)] == start
		if genuine {
			checksum := big.NewInt(int64(crc32.ChecksumIEEE([]byte(key[:length-6])))).Text(62)
			genuine = key[length-6:] == strings.Repeat("0", 6-len(checksum))+strings.Map(swapCase, checksum)
		}
		if genuine != (err == nil) {
			t.Fatalf("%q: got %v, want accepted: %v", key, err, genuine)
		}
		if err != nil {
			if hash != (auth.Hash{}) || err != auth.ErrMalformedKey { // which does not repeat the key
				t.Errorf("%q: got %x, %v", key, hash, err)
			}
			return
		}
		storetest.Equal(t, auth.Hash(sha256.Sum256([]byte(key))), hash, key)
		index = ((index % length) + length) % length
		typos := []string{key[:index] + string(key[(index+1)%length]) + string(key[index]) + key[min(index+2, length):]}
		for _, wrong := range []byte(string(other) + digits + "_ ") {
			typos = append(typos, key[:index]+string(wrong)+key[index+1:])
		}
		for _, typo := range typos {
			if _, err := auth.HashKey(typo); err == nil && typo != key {
				t.Errorf("%q and %q are both accepted", key, typo)
			}
		}
	})
}

// TestIssuedKeys: keys that are issued at once are keys, their prefixes are their beginnings, and the rest is random.
func TestIssuedKeys(t *testing.T) {
	o, seen, keys, errs := newOffice(t), make(map[string]bool), [100]auth.Issued{}, [100]error{}
	storetest.AtOnce(2, func(i int) {
		for ; i < len(keys); i += 2 {
			keys[i], errs[i] = o.CreateKey(t.Context(), o.account.ID, auth.Terms{Name: new("key")})
		}
	})
	for i, c := range keys {
		if _, err := auth.HashKey(o.key(c, errs[i]).Key); err != nil || c.KeyPrefix != c.Key[:17] {
			t.Errorf("%s: %v; its prefix is %s", c.Key, err, c.KeyPrefix)
		}
		seen[c.KeyPrefix], seen[c.Key[44:52]] = true, true
	}
	equal(t, "beginnings and ends of 100 keys", 200, len(seen))
}
