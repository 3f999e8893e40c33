package worker

import (
	"fmt"
	"strconv"
	"time"
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
func appendAnswer(b []byte, v *strictjson.Value, at *request.Location, now time.Time, f *problem.Faults) []byte {
	o := request.NewObject(v, at, f, "text", "citations", "search_queries", "model_version", "answered_at")
	if v.Kind != strictjson.KindObject {
		return b
	}
	if len(o.Text("text")) > maxAnswerText {
		o.Fault("text", fmt.Sprintf("must have at most %d bytes of UTF-8", maxAnswerText))
	}
	b = append(b, '{')
	b = appendMember(b, o, "text")
	b = append(wire.Member(b, "citations"), '[')
	citations, list := o.Array("citations", "citations", 0, maxCitations), at.Member("citations")
	for i := range citations {
		b = appendCitation(wire.Item(b), i, &citations[i], list.Item(i), f)
	}
	b = append(b, ']')
	b = append(wire.Member(b, "search_queries"), '[')
	queries := o.Array("search_queries", "search queries", 0, maxSearchQueries)
	for i := range queries {
		item := &queries[i]
		if item.Kind != strictjson.KindString {
			o.Fault("search_queries/"+strconv.Itoa(i), "must be a string, not "+item.Describe())
		} else if len(item.Text) > maxSearchQuery && utf8.RuneCountInString(item.Text) > maxSearchQuery {
			o.Fault("search_queries/"+strconv.Itoa(i), fmt.Sprintf("must have at most %d characters", maxSearchQuery))
		}
		b = item.AppendString(wire.Item(b))
	}
	b = append(b, ']')
	b = appendTextOrNull(b, o, "model_version", maxModelVersion)
	b = wire.Time(b, "answered_at", readTime(o, "answered_at", now))
	return append(b, '}')
}

func appendCitation(b []byte, i int, v *strictjson.Value, at *request.Location, f *problem.Faults) []byte {
	o := request.NewObject(v, at, f, "url", "title")
	address := ""
	if v.Kind == strictjson.KindObject {
		address = o.TextUpTo("url", maxURL)
	}
	host, ok := domainOf(address)
	if u := o.Member("url"); u != nil && u.Kind == strictjson.KindString && !ok {
		o.Fault("url", "must be an http or https URL with a host")
	}
	b = append(b, '{')
	b = wire.Int(b, "position", i+1)
	b = appendMember(b, o, "url")
	b = wire.Text(b, "domain", host)
	b = appendTextOrNull(b, o, "title", maxTitle)
	return append(b, '}')
}

// appendMember appends a member of an object that is a string.
func appendMember(b []byte, o request.Object, name string) []byte {
	if v := o.Member(name); v != nil { // otherwise there is a fault
		b = v.AppendString(wire.Member(b, name))
	}
	return b
}

// appendTextOrNull reads null or a string of up to most characters, and appends it.
func appendTextOrNull(b []byte, o request.Object, name string, most int) []byte {
	v := o.Member(name)
	switch {
	case v == nil || v.Kind == strictjson.KindNull:
		return wire.TextOrNull(b, name, nil)
	case v.Kind != strictjson.KindString:
		o.Fault(name, "must be null or a string, not "+v.Describe())
		return b
	}
	o.TextUpTo(name, most)
	return v.AppendString(wire.Member(b, name))
}

// readTime reads a time with any offset, at most 5 minutes ahead of now.
func readTime(o request.Object, name string, now time.Time) time.Time {
	v := o.Member(name)
	if v == nil {
		return time.Time{}
	}
	t, err := store.ParseTime(v.Text)
	t = t.UTC()
	switch {
	case v.Kind != strictjson.KindString || err != nil:
		o.Fault(name, "must be an RFC 3339 time, such as 2026-01-02T15:04:05Z")
	case t.After(now.Add(maxAhead)):
		o.Fault(name, "must be at most 5 minutes in the future")
	}
	return t
}
