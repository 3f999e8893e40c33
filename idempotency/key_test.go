package idempotency

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", MaxKeyLength)
	const visible = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
	escaped := strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(visible)
	for _, test := range []struct{ header, key, fault string }{
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `8e03978e-40d5-43dd-bc93-6894a57f9324`, ""}, // the draft's own example
		{`k`, `k`, ""},
		{visible, visible, ""}, // bare: only a quote at the beginning quotes, and a backslash is itself
		{`"` + escaped + `"`, visible, ""},
		{`"a\\b"`, `a\b`, ""},  // the same key, quoted
		{`"\"k\""`, `"k"`, ""}, // a key that contains quotes
		{long, long, ""},
		{`"` + long + `"`, long, ""}, // the quotes do not count
		{``, ``, "it is empty"},
		{`""`, ``, "it is empty"},
		{`"` + long + `k"`, ``, "it has 256 characters, more than 255"},
		{`a b`, ``, "character 2 is not visible ASCII"},
		{"\xff", ``, "character 1 is not visible ASCII"},
		{`"k\"`, ``, "the quoted string has no closing quote"},
		{`"a\bc"`, ``, `in the quoted string, \ is allowed before " and \ only`},
		{`"k", "k"`, ``, "there is text after the quoted string"},
	} {
		key, err := ParseKey(test.header)
		if fault := fmt.Sprint(err); key != test.key || fault != cmp.Or(test.fault, "<nil>") {
			t.Errorf("%q: got %q, %q, want %q, %q", test.header, key, fault, test.key, test.fault)
		}
	}
}

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
