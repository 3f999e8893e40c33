package strictjson

import (
	"math/bits"
	"unicode/utf8"
)

// plainPrefix returns how many bytes at the beginning of a text are ASCII characters that need no escape in a JSON
// string. It looks at eight bytes at a time.
func plainPrefix(text string) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(text)-i >= 8; i += 8 {
		s := text[i : i+8]
		// The compiler makes one load of this.
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		// A byte of quote or backslash is 0 where that character is. Subtracting 1 then sets the high bit of the byte.
		quote, backslash := v^'"'*each, v^'\\'*each
		// The lowest bit of special is in the first byte that is a control character, a quotation mark, a backslash, or
		// not ASCII: a borrow affects only the bytes after it.
		if special := ((v - ' '*each) | (quote - each) | (backslash - each) | v) & high; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	// Fewer than eight bytes are left.
	for i < len(text) && text[i] >= ' ' && text[i] < 0x80 && text[i] != '"' && text[i] != '\\' {
		i++
	}
	return i
}

// AppendString appends a JSON string. The text must be valid UTF-8, as the texts of this package and of PostgreSQL are.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		n := plainPrefix(s)
		// Characters beyond ASCII need no escape either. They are skipped byte by byte.
		for n < len(s) && s[n] >= utf8.RuneSelf {
			n++
			n += plainPrefix(s[n:])
		}
		if b = append(b, s[:n]...); n == len(s) {
			return append(b, '"')
		}
		switch c := s[n]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		// The other control characters have no short escape that is used here.
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}
