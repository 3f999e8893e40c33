package worker

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/store"
	"aiv/store/strictjson"
)

// Bounds of an answer.
const (
	maxAnswerText    = 256 << 10 // bytes
	maxCitations     = 100
	maxURL           = 2048
	maxTitle         = 512
	maxSearchQueries = 50
	maxSearchQuery   = 512
	maxModelVersion  = 128
	maxAhead         = 5 * time.Minute
)

// appendAnswer reads an answer and appends the JSON that the results route shows, so that it is encoded once: with the position
// and domain of each citation, and the time in UTC.
func appendAnswer(b []byte, v strictjson.Value, at string, now time.Time, f *problem.Faults) []byte {
	o := request.NewObject(v, at, f, "text", "citations", "search_queries", "model_version", "answered_at")
	if v.Kind != strictjson.KindObject {
		return b
	}
	text := o.Text("text")
	if len(text) > maxAnswerText {
		o.Fault("text", fmt.Sprintf("must have at most %d bytes of UTF-8", maxAnswerText))
	}
	b = append(b, '{')
	b = wire.Text(b, "text", text)
	b = append(wire.Member(b, "citations"), '[')
	for i, item := range o.Array("citations", "citations", 0, maxCitations) {
		b = appendCitation(wire.Item(b), i, item, at+"/citations/"+strconv.Itoa(i), f)
	}
	b = append(b, ']')
	b = append(wire.Member(b, "search_queries"), '[')
	for i, item := range o.Array("search_queries", "search queries", 0, maxSearchQueries) {
		if item.Kind != strictjson.KindString {
			o.Fault("search_queries/"+strconv.Itoa(i), "must be a string, not "+item.Describe())
		} else if len(item.Text) > maxSearchQuery && utf8.RuneCountInString(item.Text) > maxSearchQuery {
			o.Fault("search_queries/"+strconv.Itoa(i), fmt.Sprintf("must have at most %d characters", maxSearchQuery))
		}
		b = strictjson.AppendString(wire.Item(b), item.Text)
	}
	b = append(b, ']')
	b = wire.TextOrNull(b, "model_version", readTextOrNull(o, "model_version", maxModelVersion))
	b = wire.Time(b, "answered_at", readTime(o, "answered_at", now))
	return append(b, '}')
}

func appendCitation(b []byte, i int, v strictjson.Value, at string, f *problem.Faults) []byte {
	o := request.NewObject(v, at, f, "url", "title")
	address := ""
	if v.Kind == strictjson.KindObject {
		address = readText(o, "url", maxURL)
	}
	host, ok := domainOf(address)
	if u, there := o.Member("url"); there && u.Kind == strictjson.KindString && !ok {
		o.Fault("url", "must be an http or https URL with a host")
	}
	b = append(b, '{')
	b = wire.Int(b, "position", i+1)
	b = wire.Text(b, "url", address)
	b = wire.Text(b, "domain", host)
	b = wire.TextOrNull(b, "title", readTextOrNull(o, "title", maxTitle))
	return append(b, '}')
}

// readTime reads a time with any offset, at most 5 minutes ahead of now.
func readTime(o request.Object, name string, now time.Time) time.Time {
	v, ok := o.Member(name)
	if !ok {
		return time.Time{}
	}
	t, err := store.ParseTime(v.Text)
	t = t.UTC()
	switch {
	case v.Kind != strictjson.KindString || err != nil:
		o.Fault(name, "must be an RFC 3339 time, such as 2026-01-02T15:04:05Z")
	case t.After(now.Add(maxAhead)):
		o.Fault(name, "must be at most 5 minutes ahead")
	}
	return t
}

// domainOf returns the host of an http or https URL in lower case, with A-labels for labels that are not ASCII. It drops the
// brackets of an IPv6 address, trailing dots, and a leading www. unless only one label would remain.
func domainOf(address string) (domain string, ok bool) {
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

// mapHost maps upper case, full-width ASCII and full stops, and drops the commonest invisible characters, as browsers do [UTS 46]. It
// does not normalize: a letter and a combining accent stay two characters.
func mapHost(host string) string {
	var b strings.Builder
	for _, r := range host {
		switch {
		case r == '\u00ad' || r == '\u200b' || r == '\u2060' || r == '\ufeff':
		case r == '\u3002' || r == '\uff61': // full stops [RFC 3490, 3.1]
			b.WriteByte('.')
		case r == '\u0130':
			b.WriteString("i\u0307")
		case r >= '\uff01' && r <= '\uff5e': // full-width ASCII
			b.WriteRune(unicode.ToLower(r - 0xfee0))
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// plainHost returns the host of a URL that needs no decoding or conversion, like most URLs.
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
