package gateway

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string, p.pos being at its opening quote.
func (p *jsonParser) string() (string, error) {
	opened := p.pos
	p.pos++
	plain := p.pos // where the text not yet copied to unescaped begins
	var unescaped strings.Builder
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			s := p.text[plain:p.pos]
			p.pos++
			if unescaped.Len() == 0 { // an escape writes at least one byte, so there was none
				return s, nil
			}
			unescaped.WriteString(s)
			return unescaped.String(), nil
		case c == '\\':
			unescaped.WriteString(p.text[plain:p.pos])
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			unescaped.WriteRune(r)
			plain = p.pos
		case c < 0x20:
			return "", jsonErrorf(p.pos, "control character U+%04X in a string must be escaped", c)
		case c < 0xEF: // no noncharacter begins below; the rest of a longer sequence was found valid before
			p.pos++
		default:
			r, size := utf8.DecodeRuneInString(p.text[p.pos:])
			if isNoncharacter(r) {
				return "", jsonErrorf(p.pos, "noncharacter U+%04X is not allowed in a string", r)
			}
			p.pos += size
		}
	}
	return "", jsonErrorf(opened, "a string has no closing quote")
}

// escape reads an escape sequence, or the two that make a surrogate pair.
func (p *jsonParser) escape() (rune, error) {
	at := p.pos
	p.pos++
	c := p.peek()
	p.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		// below
	default:
		p.pos--
		return 0, p.unexpected(`one of " \ / b f n r t u after a backslash`)
	}

	r, err := p.hex4(at)
	if err != nil {
		return 0, err
	}
	if utf16.IsSurrogate(r) {
		half := r
		if r, err = p.lowSurrogate(half); err != nil {
			return 0, err
		}
		if r == utf8.RuneError {
			return 0, jsonErrorf(at, `\u%04x is half of a surrogate pair`, half)
		}
	}
	switch {
	case r == 0: // PostgreSQL's text cannot hold it
		return 0, jsonErrorf(at, `\u0000 is not allowed in a string`)
	case isNoncharacter(r):
		return 0, jsonErrorf(at, "noncharacter U+%04X is not allowed in a string", r)
	}
	return r, nil
}

// lowSurrogate reads the escape that completes high, and returns what they are together, or utf8.RuneError.
func (p *jsonParser) lowSurrogate(high rune) (rune, error) {
	at := p.pos
	if !strings.HasPrefix(p.text[at:], `\u`) {
		return utf8.RuneError, nil
	}
	p.pos += len(`\u`)
	low, err := p.hex4(at)
	return utf16.DecodeRune(high, low), err
}

// hex4 reads the four digits of the \u escape that begins at byte at.
func (p *jsonParser) hex4(at int) (rune, error) {
	end := min(p.pos+4, len(p.text))
	n, err := strconv.ParseUint(p.text[p.pos:end], 16, 16)
	if err != nil || end < p.pos+4 {
		return 0, jsonErrorf(at, `\u needs four hexadecimal digits`)
	}
	p.pos = end
	return rune(n), nil
}

// number reads a number by RFC 8259 section 6. Its size is not judged: the literal is what the client sent.
func (p *jsonParser) number() (value, error) {
	start := p.pos
	p.skip('-')
	if p.skip('0') {
		if isDigit(p.peek()) {
			return value{}, jsonErrorf(start, "a number has a leading zero")
		}
	} else if !p.digits() {
		return value{}, p.unexpected(`a digit after "-"`)
	}
	if p.skip('.') && !p.digits() {
		return value{}, p.unexpected("a digit after a decimal point")
	}
	if p.skip('e') || p.skip('E') {
		if !p.skip('-') {
			p.skip('+')
		}
		if !p.digits() {
			return value{}, p.unexpected("a digit in an exponent")
		}
	}
	return value{kind: kindNumber, text: p.text[start:p.pos]}, nil
}

func (p *jsonParser) digits() bool {
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	return p.pos > start
}

// word reads true, false or null. Any other is named whole: NaN, None and True are what clients get wrong.
func (p *jsonParser) word() (value, error) {
	start := p.pos
	for isLetter(p.peek()) {
		p.pos++
	}
	switch w := p.text[start:p.pos]; w {
	case "true", "false":
		return value{kind: kindBool, text: w}, nil
	case "null":
		return value{kind: kindNull}, nil
	default:
		return value{}, jsonErrorf(start, "%s is not a JSON value", quoteShort(w))
	}
}

func (p *jsonParser) space() {
	for {
		switch p.peek() {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the byte at p.pos; 0, which is legal nowhere, at the end.
func (p *jsonParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *jsonParser) skip(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *jsonParser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return jsonErrorf(len(p.text), "expected %s, but the document ends", want)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return jsonErrorf(p.pos, "expected %s, found %q", want, r)
}

// quoteShort quotes what a client sent for the client to read, cut to 64 bytes: an error must not grow with its request.
func quoteShort(s string) string {
	const most = 64
	if len(s) <= most {
		return strconv.Quote(s)
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(s[:end]) + "…"
}

// invalidUTF8 returns the offset of the first byte of s that is not valid UTF-8.
func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return i
		}
	}
	return len(s)
}

// isNoncharacter reports what RFC 7493 section 2.1 bars besides surrogates: U+FDD0 to U+FDEF and the last two code
// points of each plane.
func isNoncharacter(r rune) bool {
	return 0xFDD0 <= r && r <= 0xFDEF || r&0xFFFE == 0xFFFE
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
