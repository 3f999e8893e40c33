package work

import (
	"strings"
	"testing"
)

// TestPrintable: messages are what the worker interface accepts, which refuses noncharacters and more than 2,048 characters.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"line\ttab \u2028 \U0010fffd é", "line\ttab \u2028 \U0010fffd é"},
		{"a\x00b", "a\ufffdb"},
		{"\ufdcf\ufdd0\ufdef\ufdf0", "\ufdcf\ufffd\ufffd\ufdf0"},
		{"\ufffd\ufffe\uffff", "\ufffd\ufffd\ufffd"},
		{"\U0001fffd\U0001fffe\U0010ffff", "\U0001fffd\ufffd\ufffd"},
		{"a\xff\xfeb\xc3", "a\ufffdb\ufffd"},
		{strings.Repeat("é", 2048), strings.Repeat("é", 2048)},
		{strings.Repeat("é", 2049), strings.Repeat("é", 2048)},
		{strings.Repeat("\xffa", 1025), strings.Repeat("\ufffda", 1024)},
	} {
		if got := printable(test.text); got != test.want {
			t.Errorf("printable(%+q) is %+q, want %+q", test.text, got, test.want)
		}
	}
}
