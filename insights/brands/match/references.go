package match

import (
	"html"
	"strings"
	"unicode/utf8"
)

// Bounds of a character reference.
const (
	maxReferenceName = 32
	maxDecimal       = 7
	maxHexadecimal   = 6
)

// unknownToGo are the names of HTML that package html lacks.
var unknownToGo = map[string]string{"&nGt;": "\u226b\u20d2", "&nLt;": "\u226a\u20d2"}

// readReference reads a &: a character reference (M3), or text. What it stands for is never markup.
func (s *scratch) readReference(i, hi int) int {
	decoded, end := decodeReference(s.src[:hi], i)
	if end == 0 {
		s.emit('&', i)
		return i + 1
	}
	for _, r := range decoded {
		if !isIgnorable(r) {
			s.emit(r, i)
		}
	}
	return end
}

// decodeReference returns what the reference at i stands for, and its end; 0: there is none.
func decodeReference(src []byte, i int) (decoded string, end int) {
	start := i
	i++
	// most differs for the three forms, and tells them apart below.
	digits, most, least := asciiLetter|asciiDigit, maxReferenceName, 2
	if i < len(src) && src[i] == '#' {
		i++
		digits, most, least = asciiDigit, maxDecimal, 1
		if i < len(src) && lowerASCII(src[i]) == 'x' {
			i++
			digits, most = asciiLetter|asciiDigit, maxHexadecimal
		}
	}
	first := i
	for i < len(src) && is(rune(src[i]), uint8(digits)) && i-first <= most {
		i++
	}
	if n := i - first; n < least || n > most || i == len(src) || src[i] != ';' {
		return "", 0
	}
	reference := string(src[start : i+1])
	// The letters of a hexadecimal number are checked only now.
	if most == maxHexadecimal && strings.Trim(reference[3:len(reference)-1], "0123456789abcdefABCDEF") != "" {
		return "", 0
	}
	if decoded, ok := unknownToGo[reference]; ok {
		return decoded, i + 1
	}
	// UnescapeString maps 80 to 9F as windows-1252, and numbers that are no characters to U+FFFD.
	decoded = html.UnescapeString(reference)
	if most == maxReferenceName {
		// UnescapeString also decodes names that need no semicolon, such as &not in &notit;. Then it keeps the rest.
		if decoded == reference || strings.HasSuffix(decoded, ";") && reference != "&semi;" {
			return "", 0
		}
	}
	if !utf8.ValidString(decoded) {
		decoded = "\ufffd"
	}
	return decoded, i + 1
}
