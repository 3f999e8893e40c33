package worker

import (
	"net/url"
	"strings"

	"aiv/insights/brands/match"
)

// Domain returns the host of an http or https URL in lower case, with A-labels for labels that are not ASCII. It drops
// the brackets of an IPv6 address, trailing dots, and a leading www. unless only one label would remain. Brands own
// hosts in the same form.
func Domain(address string) (domain string, ok bool) {
	if host, ok := plainHost(address); ok {
		return match.Hostname(host)
	}
	// Package net/url rejects control characters too, but origin removes what follows the host.
	if strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", false
	}
	// match.Hostname would map the full-width characters to : [ and ], which are no part of a host.
	u, err := url.Parse(origin(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(u.Host, "：［］") {
		return "", false
	}
	// Only an IPv6 address without a zone is accepted in brackets.
	if strings.HasPrefix(u.Host, "[") {
		host := u.Hostname()
		return strings.ToLower(host), strings.Trim(host, "0123456789abcdefABCDEF:.") == "" && host != ""
	}
	return match.Hostname(u.Hostname())
}

// origin cuts a URL after its host and port: what follows may contain what package net/url rejects, such as a lone %.
func origin(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#\\"); found && end >= 0 {
		return scheme + "://" + rest[:end]
	}
	return address
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
