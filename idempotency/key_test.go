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
		{long + "k", ``, "it has 256 characters, more than 255"},
		{`"` + long + `k"`, ``, "it has 256 characters, more than 255"},
		{`a b`, ``, "character 2 is not visible ASCII"},
		{`"a b"`, ``, "character 2 is not visible ASCII"},
		{"k\x7f", ``, "character 2 is not visible ASCII"},
		{"\xff", ``, "character 1 is not visible ASCII"},
		{`"`, ``, "the quoted string has no closing quote"},
		{`"k\"`, ``, "the quoted string has no closing quote"},
		{`"k\`, ``, `in the quoted string, \ is allowed before " and \ only`},
		{`"a\bc"`, ``, `in the quoted string, \ is allowed before " and \ only`},
		{`"k", "k"`, ``, "there is text after the quoted string"},
	} {
		key, err := ParseKey(test.header)
		if fault := fmt.Sprint(err); key != test.key || fault != cmp.Or(test.fault, "<nil>") {
			t.Errorf("%q: got %q, %q, want %q, %q", test.header, key, fault, test.key, test.fault)
		}
	}
}
