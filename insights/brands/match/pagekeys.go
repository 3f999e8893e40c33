package match

import (
	"slices"
	"strconv"
	"strings"
)

// trackingParameters say how a reader came to a page, not which page it is. So do those that begin with utm_.
var trackingParameters = wordSet("gclid gbraid wbraid dclid fbclid msclkid ttclid yclid igshid li_fat_id mc_cid mc_eid " +
	"_ga _gl srsltid")

// pageHost returns the host of the page key: without the prefix of pages for phones.
func (a *address) pageHost() string {
	for _, device := range [...]string{"m.", "mobile.", "amp."} {
		// m.co.uk stays: without its prefix it would be a host that many sites share.
		if rest, ok := strings.CutPrefix(a.host, device); ok && checkHost(rest, "") == nil {
			return rest
		}
	}
	return a.host
}

// key returns the key of the page (M15): equal keys are one page. It is the URL without its scheme and without what
// does not distinguish pages.
func (a *address) key() string {
	var b strings.Builder
	host := a.pageHost()
	if a.ipv6 {
		host = "[" + a.host + "]"
	}
	b.WriteString(host)
	if a.port >= 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(a.port))
	}
	switch path := strings.TrimRight(normalizePercent(a.path), "/"); path {
	case "/index.html", "/index.htm", "/index.php":
	default:
		b.WriteString(path)
	}
	writeQuery(&b, normalizePercent(strings.TrimPrefix(a.query, "?")), host)
	if strings.HasPrefix(a.fragment, "#/") || strings.HasPrefix(a.fragment, "#!") {
		b.WriteString(normalizePercent(a.fragment))
	}
	return b.String()
}

// writeQuery writes the parameters that distinguish pages, sorted by name.
func writeQuery(b *strings.Builder, query, host string) {
	if query == "" {
		return
	}
	name := func(part string) string {
		name, _, _ := strings.Cut(part, "=")
		return name
	}
	// YouTube adds si to the links that its users share.
	parts := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool {
		n := name(part)
		return part == "" || strings.HasPrefix(n, "utm_") || trackingParameters[n] ||
			n == "si" && (host == "youtube.com" || host == "youtu.be")
	})
	// Parameters of one name keep their order, which may matter.
	slices.SortStableFunc(parts, func(x, y string) int { return strings.Compare(name(x), name(y)) })
	separator := byte('?')
	for _, part := range parts {
		b.WriteByte(separator)
		b.WriteString(part)
		separator = '&'
	}
}

// normalizePercent gives percent-encoding one form: unreserved characters [RFC 3986, 2.3] are decoded, other
// encodings have upper-case digits, and what is not visible ASCII is encoded.
func normalizePercent(s string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		encode := c <= ' ' || c > '~'
		if decoded, ok := percentEncoded(s, i); ok {
			i += 2
			c = decoded
			encode = !is(rune(c), asciiLetter|asciiDigit) && c != '-' && c != '.' && c != '_' && c != '~'
		}
		if encode {
			out = append(out, '%', digits[c>>4], digits[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}
