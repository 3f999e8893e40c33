package match

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHostName reports whether a text is a host name, of two labels or more, below a top-level domain that exists.
func IsHostName(text string) bool {
	labels := strings.Split(text, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxHostLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }) {
			return false
		}
	}
	if len(labels) < 2 || !utf8.ValidString(text) {
		return false
	}
	var s scratch
	return s.isTopLevelInAnyCase([]rune(labels[len(labels)-1]))
}
