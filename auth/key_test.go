package auth_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"regexp"
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

var keyForm = regexp.MustCompile(`^aiv_live_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$`)

func TestIssuedKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const n = 100
	seen := make(map[string]bool)
	for range n {
		c := o.issue(t, auth.Terms{})
		if !keyForm.MatchString(c.Key) {
			t.Fatalf("malformed key: %q", c.Key)
		}
		body, sum := c.Key[:52], c.Key[52:]
		if want := base62Of(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), 6); sum != want {
			t.Errorf("%s: its checksum is %s, want %s", c.Key, sum, want)
		}
		if c.KeyPrefix != c.Key[:17] {
			t.Errorf("%s: its prefix is %s", c.Key, c.KeyPrefix)
		}
		random := new(big.Int)
		for _, d := range body[9:] {
			random.Add(random.Mul(random, big.NewInt(62)), big.NewInt(int64(strings.IndexRune(digits, d))))
		}
		if random.BitLen() > 256 || random.BitLen() < 200 {
			t.Errorf("%s: its random part has %d bits", c.Key, random.BitLen())
		}
		hash, err := auth.HashKey(c.Key)
		if err != nil || hash != sha256.Sum256([]byte(c.Key)) {
			t.Errorf("%s: got hash %x, %v", c.Key, hash, err)
		}
		seen[c.Key[9:17]] = true
	}
	if len(seen) != n {
		t.Errorf("%d keys have %d beginnings", n, len(seen))
	}
}

func TestHashKeyRejects(t *testing.T) {
	good := knownKeys[2].key
	for name, key := range map[string]string{
		"nothing":              "",
		"only the start":       "aiv_live_",
		"the public prefix":    good[:17],
		"without a checksum":   good[:52],
		"one too few":          good[:57],
		"one too many":         good + "0",
		"another start":        "aiv_test_" + good[9:],
		"the start in capital": "AIV_LIVE_" + good[9:],
		"a space before":       " " + good,
		"a space after":        good + " ",
		"a new line":           good[:57] + "\n",
		"another checksum":     good[:52] + "000000",
		"all in lower case":    strings.ToLower(good),
		"not ASCII":            good[:56] + "\u00e9",
	} {
		if hash, err := auth.HashKey(key); !errors.Is(err, auth.ErrMalformedKey) || hash != (auth.Hash{}) {
			t.Errorf("%s: got %x, %v", name, hash, err)
		} else if key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error repeats the key: %v", name, err)
		}
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
