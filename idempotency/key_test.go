package idempotency_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/idempotency"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", idempotency.MaxKeyLength)
	const visible = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
	escaped := strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(visible)
	for _, test := range []struct{ header, key, fault string }{
		{`8e03978e-40d5-43dd-bc93-6894a57f9324`, `8e03978e-40d5-43dd-bc93-6894a57f9324`, ""},
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `8e03978e-40d5-43dd-bc93-6894a57f9324`, ""}, // the draft's own example
		{`k`, `k`, ""},
		{`"k"`, `k`, ""},
		{visible, visible, ""},
		{`"` + escaped + `"`, visible, ""},
		{`a"b`, `a"b`, ""},     // bare: only a quote at the beginning quotes
		{`a\b`, `a\b`, ""},     // bare: a backslash is itself
		{`"a\\b"`, `a\b`, ""},  // the same key, quoted
		{`"\"k\""`, `"k"`, ""}, // a key that contains quotes
		{`k,k`, `k,k`, ""},     // a comma is a visible character
		{`'k'`, `'k'`, ""},     // other quotes quote nothing
		{long, long, ""},
		{`"` + long + `"`, long, ""}, // the quotes do not count
		{``, ``, "it is empty"},
		{`""`, ``, "it is empty"},
		{long + "k", ``, "it has 256 characters, more than 255"},
		{`"` + long + `k"`, ``, "it has 256 characters, more than 255"},
		{`a b`, ``, "character 2 is not visible ASCII"},
		{`"a b"`, ``, "character 2 is not visible ASCII"},
		{"a\tb", ``, "character 2 is not visible ASCII"},
		{"k\x7f", ``, "character 2 is not visible ASCII"},
		{"\x00", ``, "character 1 is not visible ASCII"},
		{"k\u00e9", ``, "character 2 is not visible ASCII"},
		{"\xff", ``, "character 1 is not visible ASCII"},
		{`"`, ``, "the quoted string has no closing quote"},
		{`"k`, ``, "the quoted string has no closing quote"},
		{`"k\"`, ``, "the quoted string has no closing quote"},
		{`"k\`, ``, `in the quoted string, \ is allowed before " and \ only`},
		{`"a\bc"`, ``, `in the quoted string, \ is allowed before " and \ only`},
		{`"k" `, ``, "there is text after the quoted string"},
		{`"k";a=1`, ``, "there is text after the quoted string"},
		{`"k", "k"`, ``, "there is text after the quoted string"},
	} {
		key, err := idempotency.ParseKey(test.header)
		fault := ""
		if err != nil {
			fault = fmt.Sprint(err)
		}
		if key != test.key || fault != test.fault {
			t.Errorf("%q: got %q, %q, want %q, %q", test.header, key, fault, test.key, test.fault)
		}
	}
}
