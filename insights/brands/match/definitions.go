package match

import (
	"strings"
	"unicode/utf8"
)

// maxLabel is the greatest number of characters of a link label.
const maxLabel = 999

// readDefinition reads a line as a link definition, such as [label]: https://example.com 'title', or as a footnote,
// whose label begins with ^ and whose content may be anything. It returns the label as it is written; see
// appendLabelKey for how labels are compared.
func readDefinition(content string) (label string, ok bool) {
	label, rest, ok := readLabel(content)
	if !ok || rest == "" || rest[0] != ':' || strings.TrimFunc(label, isSpace) == "" {
		return "", false
	}
	if label[0] == '^' {
		return label, true
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	if rest == "" {
		return "", false
	}
	if rest[0] == '<' {
		if end := strings.IndexAny(rest[1:], "<>"); end >= 0 && rest[1+end] == '>' && isTitle(rest[1+end+1:]) {
			return label, true
		}
	}
	// A destination without angle brackets ends at the first white space, or at the end of the line.
	end := strings.IndexFunc(rest, isSpace)
	return label, end < 0 || end > 0 && isTitle(rest[end:])
}

// isTitle reports whether s is empty, or blanks and a title. As in CommonMark, a title ends at the first closing mark
// that is not escaped.
func isTitle(s string) bool {
	if s == "" {
		return true
	}
	title := strings.TrimLeft(s, " \t")
	if len(title) == len(s) || title == "" {
		return false
	}
	// closing is the mark that ends the title.
	closing := title[0]
	switch closing {
	case '(':
		closing = ')'
	case '"', '\'':
	default:
		return false
	}
	for i := 1; i < len(title); i++ {
		switch c := title[i]; {
		case c == closing:
			return i+1 == len(title)
		// A title in parentheses contains no opening one.
		case c == '(' && closing == ')':
			return false
		case c == '\\' && i+1 < len(title) && is(rune(title[i+1]), asciiPunct):
			i++
		}
	}
	return false
}

// readLabel reads [label] at the start of s. A label has no brackets.
func readLabel(s string) (label, rest string, ok bool) {
	if s == "" || s[0] != '[' {
		return "", "", false
	}
	end := strings.IndexAny(s[1:], "[]")
	if end < 0 || s[1+end] != ']' {
		return "", "", false
	}
	label, rest = s[1:1+end], s[1+end+1:]
	return label, rest, label != "" && utf8.RuneCountInString(label) <= maxLabel
}

// define remembers that a label is defined.
func (s *scratch) define(label string) {
	s.key = appendLabelKey(s.key[:0], label)
	s.defined[string(s.key)] = struct{}{}
}

// isDefined reports whether a label is defined.
func (s *scratch) isDefined(label string) bool {
	if len(s.defined) == 0 {
		return false
	}
	s.key = appendLabelKey(s.key[:0], label)
	_, ok := s.defined[string(s.key)]
	return ok
}

// appendLabelKey appends the form in which labels are compared: without ASCII case, trimmed, with runs of white
// space as one space.
func appendLabelKey(key []byte, label string) []byte {
	start, space := len(key), false
	for _, r := range label {
		if isSpace(r) {
			space = true
			continue
		}
		if space && len(key) > start {
			key = append(key, ' ')
		}
		space = false
		if r < utf8.RuneSelf {
			r = rune(lowerASCII(byte(r)))
		}
		key = utf8.AppendRune(key, r)
	}
	return key
}
