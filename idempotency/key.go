package idempotency

import (
	"errors"
	"fmt"
	"strings"
)

// MaxKeyLength is the longest key, in characters.
const MaxKeyLength = 255

// ParseKey parses the value of an Idempotency-Key header: visible ASCII characters, bare or, as in the IETF draft, as a
// quoted string of RFC 8941. Both forms of the same characters are the same key.
func ParseKey(header string) (string, error) {
	key := header
	if strings.HasPrefix(header, `"`) {
		var err error
		if key, err = unquote(header); err != nil {
			return "", err
		}
	}
	if key == "" {
		return "", errors.New("it is empty")
	}
	if len(key) > MaxKeyLength {
		return "", fmt.Errorf("it has %d characters, more than %d", len(key), MaxKeyLength)
	}
	for i := range len(key) {
		if c := key[i]; c < 0x21 || c > 0x7e {
			return "", fmt.Errorf("character %d is not visible ASCII", i+1)
		}
	}
	return key, nil
}

// unquote parses a header that is one RFC 8941 string.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if i != len(s)-1 {
				return "", errors.New("there is text after the quoted string")
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", errors.New(`in the quoted string, \ is allowed before " and \ only`)
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("the quoted string has no closing quote")
}
