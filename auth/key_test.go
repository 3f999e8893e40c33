package auth_test

import (
	"encoding/hex"
	"math/big"
	"strings"
	"testing"

	"aiv/auth"
)

// The keys of 32 zero bytes, of 32 bytes 0xff, of the bytes 0 to 31, and one whose checksum begins with 0, with the
// SHA-256 of each; computed by Python's zlib.crc32 and hashlib.
var knownKeys = []struct{ key, hash string }{
	{"aiv_live_00000000000000000000000000000000000000000003GcTia", "93ff14794ded1936bd8509e3f83c20fe30c6e40c711d9514ddd65083da16931b"},
	{"aiv_live_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp10TV59c", "fabb18cc9728d82f0ea353f08bfe036e460d604767fec4f38e7d0d130cf167b9"},
	{"aiv_live_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf2v5ioy", "e72f40bba34e9b25d4f30c2c8857fb1f95f73dc949662558a876057c982886c5"},
	{"aiv_live_000000000000000000000000000000000000000003300MBDd", "3b023ee9c98961105acb142a36cef3cfc63b893a736d54f858db216a814068a5"},
}

func TestHashKeyVectors(t *testing.T) {
	for _, test := range knownKeys {
		got, err := auth.HashKey(test.key)
		if err != nil || hex.EncodeToString(got[:]) != test.hash {
			t.Errorf("%s: got %x, %v, want %s", test.key, got, err, test.hash)
		}
	}
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// base62Of formats a number with big integers.
func base62Of(n *big.Int, length int) string {
	text := ""
	for base, digit := big.NewInt(62), new(big.Int); n.Sign() > 0; {
		n, digit = new(big.Int).DivMod(n, base, digit)
		text = digits[digit.Int64():digit.Int64()+1] + text
	}
	return strings.Repeat("0", length-len(text)) + text
}

// TestIssuedKeys: an issued key is a key, its prefix is its beginning, and the rest is random.
func TestIssuedKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const n = 100
	seen := make(map[string]bool)
	for range n {
		c := o.issue(t, auth.Terms{})
		hash(t, c.Key)
		if c.KeyPrefix != c.Key[:17] {
			t.Errorf("%s: its prefix is %s", c.Key, c.KeyPrefix)
		}
		random := new(big.Int)
		for _, d := range c.Key[9:52] {
			random.Add(random.Mul(random, big.NewInt(62)), big.NewInt(int64(strings.IndexRune(digits, d))))
		}
		if random.BitLen() > 256 || random.BitLen() < 200 {
			t.Errorf("%s: its random part has %d bits", c.Key, random.BitLen())
		}
		seen[c.Key[9:17]] = true
	}
	if len(seen) != n {
		t.Errorf("%d keys have %d beginnings", n, len(seen))
	}
}

// TestTypingErrors: the checksum detects any wrong character and any two adjacent characters that are exchanged.
func TestTypingErrors(t *testing.T) {
	good := knownKeys[2].key
	for i := range good {
		for _, d := range digits + "-_ " {
			if typo := good[:i] + string(d) + good[i+1:]; typo != good {
				if _, err := auth.HashKey(typo); err == nil {
					t.Errorf("%s is accepted instead of %s", typo, good)
				}
			}
		}
		if i > 0 && good[i] != good[i-1] {
			typo := good[:i-1] + good[i:i+1] + good[i-1:i] + good[i+1:]
			if _, err := auth.HashKey(typo); err == nil {
				t.Errorf("%s is accepted instead of %s", typo, good)
			}
		}
	}
}
