package worker

import (
	"net/url"
	"strings"
	"unicode"
)

// Domain returns the host of an http or https URL in lower case, with A-labels for labels that are not ASCII. It drops
// the brackets of an IPv6 address, trailing dots, and a leading www. unless only one label would remain.
func Domain(address string) (domain string, ok bool) {
	host, ok := plainHost(address)
	if !ok {
		if strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "", false
		}
		u, err := url.Parse(origin(address))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(u.Host, "：［］") {
			return "", false
		}
		if host, ok = toASCII(mapHost(u.Hostname())); !ok {
			return "", false
		}
	}
	if host = strings.TrimRight(host, "."); host == "" {
		return "", false
	}
	if rest, found := strings.CutPrefix(host, "www."); found && strings.Contains(rest, ".") {
		host = rest
	}
	return host, true
}

// origin cuts a URL after its host and port: what follows may contain what package net/url rejects, such as a lone %.
func origin(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#\\"); found && end >= 0 {
		return scheme + "://" + rest[:end]
	}
	return address
}

// mapHost maps upper case, full-width ASCII and full stops, and drops the commonest invisible characters, as browsers
// do [UTS 46]. It does not normalize: a letter and a combining accent stay two characters.
func mapHost(host string) string {
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
	}, strings.ReplaceAll(host, "\u0130", "i\u0307"))
}

// plainHost returns the host of a URL that needs no decoding or conversion, like most URLs. It saves about 1 µs a
// citation, a quarter of the time to read a settlement of answers with three.
func plainHost(address string) (host string, ok bool) {
	rest, ok := strings.CutPrefix(address, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(address, "http://"); !ok {
			return "", false
		}
	}
	end := 0
	for end < len(rest) && (rest[end] >= 'a' && rest[end] <= 'z' || rest[end] >= '0' && rest[end] <= '9' || rest[end] == '.' || rest[end] == '-') {
		end++
	}
	host, rest = rest[:end], rest[end:]
	if rest != "" && rest[0] != '/' {
		return "", false
	}
	for i := range len(rest) {
		if c := rest[i]; c < ' ' || c == 0x7f {
			return "", false
		}
	}
	return host, true
}
