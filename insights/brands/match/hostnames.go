package match

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hostname returns the host of a URL as domains are compared: in lower case, with A-labels, without dots at its end
// and without one www. unless only one label would remain. Results show the same form as the domain of a citation.
// It reports false for what no host can contain.
func Hostname(host string) (string, bool) {
	if !plainHostname(host) {
		if !utf8.ValidString(host) { // strings.Map would turn bytes that are no UTF-8 into U+FFFD
			return "", false
		}
		var ok bool
		if host, ok = encodeHostname(decodeHostname(host)); !ok {
			return "", false
		}
	}
	host = strings.TrimRight(host, ".")
	// www.com stays: one label is no host of a brand.
	if rest, found := strings.CutPrefix(host, "www."); found && strings.Contains(rest, ".") {
		host = rest
	}
	return host, host != ""
}

// plainHostname reports whether a host needs no conversion, like most.
func plainHostname(host string) bool {
	for i := range len(host) {
		if c := host[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
			return false
		}
	}
	return true
}

// decodeHostname decodes percent-encoded characters beyond ASCII, lower-cases letters, maps full-width ASCII and
// full stops, and drops the commonest invisible characters, as browsers do [UTS #46]. It does not normalize: a
// letter and a combining accent stay two characters.
func decodeHostname(host string) string {
	// ToLower maps U+0130 to i alone, which would lose its dot.
	host = strings.ReplaceAll(decodeBeyondASCII(host), "\u0130", "i\u0307")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00ad' || r == '\u200b' || r == '\u2060' || r == '\ufeff':
			return -1
		case r == '\u3002' || r == '\uff61': // full stops [RFC 3490, 3.1]
			return '.'
		case r >= '\uff01' && r <= '\uff5e': // full-width ASCII
			return unicode.ToLower(r - 0xfee0)
		}
		return unicode.ToLower(r)
	}, host)
}

// decodeBeyondASCII decodes percent-encoded bytes that are UTF-8 of characters beyond ASCII, and nothing else.
func decodeBeyondASCII(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out []byte
	for i := 0; i < len(s); {
		var encoded [utf8.UTFMax]byte
		n := 0
		for k := i; n < len(encoded); k += 3 {
			c, ok := percentEncoded(s, k)
			if !ok || c < utf8.RuneSelf {
				break
			}
			encoded[n] = c
			n++
		}
		// The encoded bytes may be more than one character. Only the first is decoded here.
		if r, size := utf8.DecodeRune(encoded[:n]); size > 1 || r != utf8.RuneError {
			out = append(out, encoded[:size]...)
			i += 3 * size
			continue
		}
		out = append(out, s[i])
		i++
	}
	return string(out)
}

// percentEncoded returns the byte that is percent-encoded at s[i].
func percentEncoded(s string, i int) (byte, bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= lowerASCII(c) && lowerASCII(c) <= 'f':
		return int(lowerASCII(c) - 'a' + 10)
	}
	return -1
}

// encodeHostname converts labels that are not ASCII to A-labels [RFC 5891]: xn-- and their Punycode. It reports
// false for characters that no host can have, and for labels that would become too long.
func encodeHostname(host string) (string, bool) {
	ascii := true
	for i := range len(host) {
		c := host[i]
		ascii = ascii && c < utf8.RuneSelf
		if c <= ' ' || c == 0x7f || strings.IndexByte(`"#%/:<>?@[\]^`+"`{|}", c) >= 0 {
			return "", false
		}
	}
	if ascii {
		return host, true
	}
	// Labels of ASCII stay as they are, even A-labels.
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if strings.ContainsFunc(label, func(r rune) bool { return r >= utf8.RuneSelf }) {
			// Punycode has one character or more for each character of the label, so this label would be too long. To
			// encode it would take quadratic time.
			if utf8.RuneCountInString(label) > maxHostLabel {
				return "", false
			}
			encoded, ok := punycode(label)
			if !ok || len("xn--"+encoded) > maxHostLabel {
				return "", false
			}
			labels[i] = "xn--" + encoded
		}
	}
	return strings.Join(labels, "."), true
}

// IsHostName reports whether a text is a host name, of two labels or more, below a top-level domain that exists. It
// is stricter than Hostname, and does not normalize.
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
