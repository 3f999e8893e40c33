package worker

import (
	"time"
	"unicode/utf8"

	"aiv/gateway/strictjson"
	"aiv/store"
)

// appendString appends a JSON string. The text is valid UTF-8 without U+0000, as strictjson returns and PostgreSQL stores it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		n := strictjson.Plain(s)
		for n < len(s) && s[n] >= utf8.RuneSelf {
			n++
			n += strictjson.Plain(s[n:])
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
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

func appendStringOrNull(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendString(b, *s)
}

func appendTime(b []byte, t time.Time) []byte {
	return append(store.AppendTime(append(b, '"'), t), '"')
}
