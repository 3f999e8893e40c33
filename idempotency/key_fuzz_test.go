package idempotency

import (
	"strings"
	"testing"
)

// FuzzParseKey: an accepted key is visible ASCII of a bounded length, and both of its forms are parsed as the same key.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", "k", `"k"`, `"a\\b"`, `"\"k\""`, `a"b`, `"`, `"k`, `"k\`, `"k" `, `"k";a=1`, "\x00", "k\xff", " k", `""`, `\`, strings.Repeat("k", 256),
	} {
		f.Add(seed)
	}
	quote := strings.NewReplacer(`"`, `\"`, `\`, `\\`)
	f.Fuzz(func(t *testing.T, header string) {
		key, err := ParseKey(header)
		if err != nil {
			if key != "" || err.Error() == "" {
				t.Errorf("%q: got %q with the error %q", header, key, err)
			}
			return
		}
		if len(key) < 1 || len(key) > MaxKeyLength || strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Errorf("%q: got %q", header, key)
		}
		if again, err := ParseKey(`"` + quote.Replace(key) + `"`); again != key || err != nil {
			t.Errorf("%q, quoted: got %q, %v", key, again, err)
		}
		if again, err := ParseKey(key); !strings.HasPrefix(key, `"`) && (again != key || err != nil) {
			t.Errorf("%q, bare: got %q, %v", key, again, err)
		}
	})
}
