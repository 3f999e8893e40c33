package strictjson

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string. p.pos is at its opening quote.
func (p *parser) string() (string, error) {
	opened := p.pos
	p.pos++
	plain := p.pos // where the text not yet copied to unescaped begins
	var unescaped strings.Builder
	for {
		if p.pos += plainPrefix(p.text[p.pos:]); p.pos == len(p.text) {
			return "", errorf(opened, "a string has no closing quote")
		}
		switch c := p.text[p.pos]; {
		// Without an escape the string is a substring of the document.
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
			return "", errorf(p.pos, "control character U+%04X in a string must be escaped", c)
		case c < 0xEF: // no noncharacter begins below; Parse has validated longer sequences
			p.pos++
		default:
			r, size := utf8.DecodeRuneInString(p.text[p.pos:])
			if isNoncharacter(r) {
				return "", errorf(p.pos, "noncharacter U+%04X is not allowed in a string", r)
			}
			p.pos += size
		}
	}
}

// escape reads an escape sequence, or the two of a surrogate pair.
func (p *parser) escape() (rune, error) {
	at := p.pos
	p.pos++
	// At the end of the text c is 0, which is no escape.
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
		// The error names the character after the backslash.
		p.pos--
		return 0, p.unexpected(`one of " \ / b f n r t u after a backslash`)
	}

	r, err := p.hex4(at)
	if err != nil {
		return 0, err
	}
	// A character beyond U+FFFF is escaped as two surrogates, the high one first.
	if utf16.IsSurrogate(r) {
		half := r
		if r, err = p.lowSurrogate(half); err != nil {
			return 0, err
		}
		if r == utf8.RuneError {
			return 0, errorf(at, `\u%04x is half of a surrogate pair`, half)
		}
	}
	switch {
	case r == 0: // PostgreSQL cannot store it in text
		return 0, errorf(at, `\u0000 is not allowed in a string`)
	case isNoncharacter(r):
		return 0, errorf(at, "noncharacter U+%04X is not allowed in a string", r)
	}
	return r, nil
}

// lowSurrogate reads the escape after high and returns the rune of the pair, or utf8.RuneError.
func (p *parser) lowSurrogate(high rune) (rune, error) {
	at := p.pos
	// The caller reports the half of the pair.
	if !strings.HasPrefix(p.text[at:], `\u`) {
		return utf8.RuneError, nil
	}
	p.pos += len(`\u`)
	low, err := p.hex4(at)
	return utf16.DecodeRune(high, low), err
}

// hex4 reads the four digits of the \u escape that begins at byte at.
func (p *parser) hex4(at int) (rune, error) {
	end := min(p.pos+4, len(p.text))
	// ParseUint accepts no sign and, with this base, no underscore.
	n, err := strconv.ParseUint(p.text[p.pos:end], 16, 16)
	if err != nil || end < p.pos+4 {
		return 0, errorf(at, `\u needs four hexadecimal digits`)
	}
	p.pos = end
	return rune(n), nil
}

// number reads a number [RFC 8259, section 6] and keeps its literal.
func (p *parser) number() (Value, error) {
	start := p.pos
	p.skip('-')
	// A number that begins with 0 has no other digit before its point.
	if p.skip('0') {
		if isDigit(p.peek()) {
			return Value{}, errorf(start, "a number has a leading zero")
		}
		// value has seen a digit or a minus sign, so the minus sign has no digit after it.
	} else if !p.digits() {
		return Value{}, p.unexpected(`a digit after "-"`)
	}
	if p.skip('.') && !p.digits() {
		return Value{}, p.unexpected("a digit after a decimal point")
	}
	if p.skip('e') || p.skip('E') {
		if !p.skip('-') {
			p.skip('+')
		}
		if !p.digits() {
			return Value{}, p.unexpected("a digit in an exponent")
		}
	}
	return Value{Kind: KindNumber, Text: p.text[start:p.pos]}, nil
}

// digits skips digits, and reports whether there was one.
func (p *parser) digits() bool {
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	return p.pos > start
}

// word reads true, false or null. The error names the whole word, because clients send NaN, None and True.
func (p *parser) word() (Value, error) {
	start := p.pos
	for isLetter(p.peek()) {
		p.pos++
	}
	switch w := p.text[start:p.pos]; w {
	case "true", "false":
		return Value{Kind: KindBool, Text: w}, nil
	case "null":
		return Value{Kind: KindNull}, nil
	default:
		return Value{}, errorf(start, "%s is not a JSON value", quoteShort(w))
	}
}

func (p *parser) space() {
	for {
		switch p.peek() {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the byte at p.pos, or 0, which is never legal, at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// skip reports whether c is next, and skips it if so.
func (p *parser) skip(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

// unexpected returns the error for what is at p.pos, where want was expected.
func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return errorf(len(p.text), "expected %s, but the document ends", want)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return errorf(p.pos, "expected %s, found %q", want, r)
}

// quoteShort quotes a part of the text, cut to 64 bytes so that errors do not grow with the text.
func quoteShort(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…" // without the half of a character
	}
	return strconv.Quote(s)
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

// isNoncharacter reports whether r is U+FDD0 to U+FDEF or one of the last two code points of a plane, which RFC 7493,
// section 2.1, forbids besides surrogates.
func isNoncharacter(r rune) bool {
	return 0xFDD0 <= r && r <= 0xFDEF || r&0xFFFE == 0xFFFE
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isLetter reports whether c is an ASCII letter: bit 0x20 makes it lower case.
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
