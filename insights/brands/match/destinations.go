package match

import "unicode/utf8"

// Bounds of a link destination.
const (
	maxDestination = 2048 // characters
	maxTitle       = 1000 // characters
	maxParentheses = 32   // levels
)

// destinationEnd returns the end of the destination of a link that begins at i, such as (https://example.com
// "title"), or 0.
func destinationEnd(src []byte, i int) int {
	if i == len(src) || src[i] != '(' {
		return 0
	}
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == '<' {
		n := 0
		for k := i + 1; k < len(src) && n <= maxDestination; n++ {
			switch src[k] {
			case '>':
				if end := destinationTail(src, k+1); end > 0 {
					return end
				}
				// This ends the loop: the text is read again as a destination without angle brackets.
				n = maxDestination
			case '<', '\n':
				n = maxDestination
			}
			k += runeLength(src[k:])
		}
	}
	depth := 0
	for n := 0; i < len(src) && n <= maxDestination; n++ {
		if inDestination[src[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case isSpace(r) && depth > 0:
			return 0
		case isSpace(r), r == ')' && depth == 0:
			return destinationTail(src, i)
		case r == '(':
			if depth++; depth > maxParentheses {
				return 0
			}
		case r == ')':
			depth--
		case r == '\\' && i+1 < len(src) && is(rune(src[i+1]), asciiPunct):
			// An escaped character is two characters, and neither opens nor closes parentheses.
			size, n = 2, n+1
		}
		i += size
	}
	return 0
}

// inDestination are the ASCII characters that mean nothing in a destination.
var inDestination = func() (table [256]bool) {
	for c := range rune(utf8.RuneSelf) {
		table[c] = !isSpace(c) && c != '(' && c != ')' && c != '\\'
	}
	return table
}()

// destinationTail reads what follows a destination: white space and a title, white space, and the closing
// parenthesis. It returns the index after the parenthesis, or 0.
func destinationTail(src []byte, i int) int {
	k := skipSpace(src, i)
	if k > i && k < len(src) {
		switch c := src[k]; c {
		case '"', '\'':
			k = titleEnd(src, k+1, c)
		case '(':
			k = titleEnd(src, k+1, ')')
		}
		if k == 0 {
			return 0
		}
		k = skipSpace(src, k)
	}
	if k < len(src) && src[k] == ')' {
		return k + 1
	}
	return 0
}

// titleEnd returns the index after the end of a title, or 0.
func titleEnd(src []byte, i int, end byte) int {
	for n := 0; i < len(src); n++ {
		switch c := src[i]; {
		case c == end && n <= maxTitle:
			return i + 1
		case n >= maxTitle, c == '(' && end == ')':
			return 0
		case c == '\\' && i+1 < len(src) && is(rune(src[i+1]), asciiPunct):
			i, n = i+2, n+1
		default:
			i += runeLength(src[i:])
		}
	}
	return 0
}

// runeLength returns the length in bytes of the first character of src, which is not empty.
func runeLength(src []byte) int {
	if src[0] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRune(src)
	return size
}

// skipSpace returns the index of the first character from i on that is not white space, or len(src).
func skipSpace(src []byte, i int) int {
	for i < len(src) {
		r, size := utf8.DecodeRune(src[i:])
		if !isSpace(r) {
			break
		}
		i += size
	}
	return i
}
