package worker

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/runs/answers"
	"aiv/store"
	"aiv/store/strictjson"
)

// answered_at may be up to maxAhead in the future.
const maxAhead = 5 * time.Minute

var (
	// The members of an answer. Optional ones were added later, and workers of earlier versions do not send them.
	requiredMembers = []string{"text", "citations", "search_queries", "model_version", "answered_at"}
	optionalMembers = []string{"searched", "truncated", "usage"}
)

// readAnswer reads an answer. Its texts are substrings of the body. It continues after a fault, so that f has all
// faults.
func readAnswer(v *strictjson.Value, at *request.Location, now time.Time, f *problem.Faults) *answers.Answer {
	o := request.NewOpenObject(v, at, f, requiredMembers, optionalMembers)
	if v.Kind != strictjson.KindObject {
		return nil
	}
	a := &answers.Answer{Text: o.Text("text")}
	if len(a.Text) > answers.MaxText {
		o.Fault("text", fmt.Sprintf("must have at most %d bytes of UTF-8", answers.MaxText))
	}
	// list is the location of the array. list.Item returns the location of an item.
	citations, list := o.Array("citations", "citations", 0, answers.MaxCitations), at.Member("citations")
	a.Citations = make([]answers.Citation, len(citations))
	for i := range citations {
		a.Citations[i] = readCitation(i, &citations[i], list.Item(i), f)
	}
	queries := o.Array("search_queries", "search queries", 0, answers.MaxSearchQueries)
	a.SearchQueries = make([]string, len(queries))
	for i := range queries {
		item := &queries[i]
		if item.Kind != strictjson.KindString {
			o.Fault("search_queries/"+strconv.Itoa(i), "must be a string, not "+item.Describe())
			// A text has at least as many bytes as characters, so a short one need not be counted.
		} else if len(item.Text) > answers.MaxSearchQuery && utf8.RuneCountInString(item.Text) > answers.MaxSearchQuery {
			o.Fault("search_queries/"+strconv.Itoa(i), fmt.Sprintf("must have at most %d characters", answers.MaxSearchQuery))
		}
		a.SearchQueries[i] = item.Text
	}
	a.ModelVersion = readTextOrNull(o, "model_version", answers.MaxModelVersion)
	a.AnsweredAt = readTime(o, "answered_at", now)
	// Optional members that are missing are read as null or false.
	a.Searched = readBoolOrNull(o, "searched")
	a.Truncated = o.Bool("truncated")
	a.Usage = readUsage(o, f)
	return a
}

// readCitation reads citation i of an answer. Positions count from 1, in the order in which the worker lists them.
func readCitation(i int, v *strictjson.Value, at *request.Location, f *problem.Faults) answers.Citation {
	o := request.NewObject(v, at, f, "url", "title")
	if v.Kind != strictjson.KindObject {
		return answers.Citation{}
	}
	c := answers.Citation{Position: i + 1, URL: o.TextUpTo("url", answers.MaxURL)}
	var ok bool
	if c.Domain, ok = Domain(c.URL); !ok {
		// A missing URL and one that is no string have a fault already.
		if u := o.Member("url"); u != nil && u.Kind == strictjson.KindString {
			o.Fault("url", "must be an http or https URL with a host")
		}
	}
	c.Title = readTextOrNull(o, "title", answers.MaxTitle)
	return c
}

// readTextOrNull reads null or a string of up to limit characters.
func readTextOrNull(o request.Object, name string, limit int) *string {
	v := o.Member(name)
	switch {
	case v == nil || v.Kind == strictjson.KindNull:
		return nil
	case v.Kind != strictjson.KindString:
		o.Fault(name, "must be null or a string, not "+v.Describe())
		return nil
	}
	return new(o.TextUpTo(name, limit)) // a pointer into v would keep the parsed values in memory
}

// readBoolOrNull reads null or a boolean. A member that is missing is null.
func readBoolOrNull(o request.Object, name string) *bool {
	v := o.Member(name)
	switch {
	case v == nil || v.Kind == strictjson.KindNull:
		return nil
	case v.Kind != strictjson.KindBool:
		o.Fault(name, "must be null, true or false, not "+v.Describe())
		return nil
	}
	return new(v.Text == "true")
}

// readUsage reads the member usage, which may be missing or null.
func readUsage(answer request.Object, f *problem.Faults) *answers.Usage {
	v := answer.Member("usage")
	if v == nil || v.Kind == strictjson.KindNull {
		return nil
	}
	if v.Kind != strictjson.KindObject {
		answer.Fault("usage", "must be null or an object, not "+v.Describe())
		return nil
	}
	o := request.NewObject(v, answer.At.Member("usage"), f, "input_tokens", "output_tokens", "searches")
	count := func(name string) *int64 { return readIntegerOrNull(o, name, 0, answers.MaxUsage) }
	return &answers.Usage{InputTokens: count("input_tokens"), OutputTokens: count("output_tokens"), Searches: count("searches")}
}

// readIntegerOrNull reads null or an integer from least to most. After a fault the value does not matter, because the
// request is rejected.
func readIntegerOrNull(o request.Object, name string, least, most int64) *int64 {
	v := o.Member(name)
	if v == nil || v.Kind == strictjson.KindNull {
		return nil
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if v.Kind != strictjson.KindNumber || err != nil || n < least || n > most {
		o.Fault(name, fmt.Sprintf("must be null or an integer from %d to %d", least, most))
	}
	return &n
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
