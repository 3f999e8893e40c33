package match

import "unicode/utf8"

// readAngle reads a <: an autolink, a tag or text.
func (s *scratch) readAngle(i, hi int) int {
	src := s.src[:hi]
	if end := autolinkEnd(src, i); end > 0 {
		s.emit(' ', i)
		s.unit().linked = true
		return end
	}
	nameEnd, end := tagEnd(src, i)
	if end == 0 {
		s.emit('<', i)
		return i + 1
	}
	// A closing tag is treated as an opening one.
	name := src[i+1 : nameEnd]
	if name[0] == '/' {
		name = name[1:]
	}
	s.key = s.key[:0]
	for _, c := range name {
		s.key = append(s.key, lowerASCII(c))
	}
	switch {
	// A barrier: what follows is another unit of the block.
	case blockTags[string(s.key)]:
		s.closeUnit()
		s.openUnit()
	case string(s.key) == "br":
		s.emit(' ', i)
	}
	return end
}

// Bounds of what stands between angle brackets, in characters.
const (
	maxScheme   = 32
	maxAutolink = 2048 // after the scheme
	maxTag      = 1000
)

// autolinkEnd returns the end of an autolink at i, such as <https://example.com>, or 0.
func autolinkEnd(src []byte, i int) int {
	start := i + 1
	isScheme := func(c byte) bool { return is(rune(c), asciiLetter|asciiDigit) || c == '+' || c == '.' || c == '-' }
	for i = start; i < len(src) && isScheme(src[i]); {
		i++
	}
	if n := i - start; n < 2 || n > maxScheme || !is(rune(src[start]), asciiLetter) || i == len(src) || src[i] != ':' {
		return 0
	}
	i++
	// An autolink has neither white space nor another < inside.
	for n := 0; i < len(src) && n <= maxAutolink; n++ {
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case r == '>':
			return i + 1
		case r == '<' || isSpace(r):
			return 0
		}
		i += size
	}
	return 0
}

// tagEnd returns the ends of the name of a tag of HTML at i and of the tag, or 0.
func tagEnd(src []byte, i int) (nameEnd, end int) {
	start := i
	i++
	if i < len(src) && src[i] == '/' {
		i++
	}
	if i == len(src) || !is(rune(src[i]), asciiLetter) {
		return 0, 0
	}
	for i < len(src) && is(rune(src[i]), asciiLetter|asciiDigit) || i < len(src) && src[i] == '-' {
		i++
	}
	nameEnd = i
	// White space, a slash or > must follow the name. The bound keeps skipSpace from reading long white space.
	if i == len(src) || src[i] != '/' && src[i] != '>' && skipSpace(src[:min(i+utf8.UTFMax, len(src))], i) == i {
		return 0, 0
	}
	// quote is the mark that closes the attribute value that i is in; 0: i is outside of one.
	quote := byte(0)
	for n := i - start; i < len(src) && n < maxTag; n++ {
		switch c := src[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			return 0, 0
		case c == '>':
			return nameEnd, i + 1
		}
		i += runeLength(src[i:])
	}
	return 0, 0
}
