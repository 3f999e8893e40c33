package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"aiv/catalog"
	"aiv/store"
)

// A filter is a query parameter of a list. F is the filter or query that the parameters set. The functions below take a
// function at, which returns the field to set. An invalid value may be stored too, because the request is then
// rejected.
type filter[F any] struct {
	name string
	want string                // describes the values that are valid, in error messages
	set  func(*F, string) bool // reports whether the value is valid
}

// read stores a value, and returns what is wrong with it, or "".
func (f *filter[F]) read(to *F, v string) (wrong string) {
	if f.set(to, v) {
		return ""
	}
	return "must be " + f.want
}

// wordFilter accepts one of the words.
func wordFilter[F any](name string, words []string, at func(*F) *string) filter[F] {
	return filter[F]{name, "one of " + strings.Join(words, ", "), func(f *F, v string) bool {
		*at(f) = v
		return slices.Contains(words, v)
	}}
}

// wordsFilter accepts a comma-separated list of the words, each at most once.
func wordsFilter[F any](name string, words []string, at func(*F) *[]string) filter[F] {
	return filter[F]{name, "a comma-separated list of " + strings.Join(words, ", ") + ", each at most once", func(f *F, v string) bool {
		// An empty value is one empty word, which is none of the words.
		list := strings.Split(v, ",")
		for i, w := range list {
			if !slices.Contains(words, w) || slices.Contains(list[:i], w) {
				return false
			}
		}
		*at(f) = list
		return true
	}}
}

// formFilter accepts a text that matches the pattern.
func formFilter[F any](name string, p pattern, at func(*F) *string) filter[F] {
	return filter[F]{name, p.want, func(f *F, v string) bool {
		*at(f) = v
		return p.form().MatchString(v)
	}}
}

// textFilter accepts any text that PostgreSQL can store.
func textFilter[F any](name string, at func(*F) *string) filter[F] {
	return filter[F]{name, fmt.Sprintf("a string of 1 to %d characters", catalog.MaxFilterable), func(f *F, v string) bool {
		*at(f) = v
		return v != "" && utf8.ValidString(v) && utf8.RuneCountInString(v) <= catalog.MaxFilterable && !strings.ContainsRune(v, 0)
	}}
}

// timeFilter accepts a time of RFC 3339.
func timeFilter[F any](name string, at func(*F) **time.Time) filter[F] {
	return filter[F]{name, "an RFC 3339 time, such as 2026-01-31T00:00:00Z", func(f *F, v string) bool {
		t, err := parseBound(v)
		*at(f) = &t
		return err == nil
	}}
}

// parseBound reads an RFC 3339 time that bounds stored times. PostgreSQL stores microseconds: "from" includes the time
// and "to" excludes it, so rounding up keeps both exact.
func parseBound(v string) (time.Time, error) {
	t, err := store.ParseTime(v)
	if rest := t.Nanosecond() % 1000; rest > 0 {
		t = t.Add(time.Duration(1000 - rest))
	}
	if err == nil && t.UTC().Year() > 9999 {
		err = errors.New("the time rounds up to the year 10000")
	}
	return t, err
}

// idsFilter accepts a comma-separated list of ids, at most maxLimit. Repeated and malformed ids are left out, as
// unknown ones are.
func idsFilter[F any](name, prefix string, at func(*F) *[]store.ID) filter[F] {
	want := fmt.Sprintf("a comma-separated list of at most %d ids", maxLimit)
	return filter[F]{name, want, func(f *F, v string) bool {
		// A nil list would select all runs.
		ids := []store.ID{}
		list := strings.Split(v, ",")
		for _, text := range list {
			if id, err := store.ParseID(prefix, text); err == nil && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		*at(f) = ids
		return len(list) <= maxLimit
	}}
}

// runFilter accepts the id of a run.
func runFilter[F any](name string, at func(*F) **store.ID) filter[F] {
	return filter[F]{name, "the id of a run", func(f *F, v string) bool {
		id, err := store.ParseID("run", v)
		if err == nil {
			*at(f) = &id
		}
		return err == nil
	}}
}

// boolFilter accepts true and false.
func boolFilter[F any](name string, at func(*F) **bool) filter[F] {
	return filter[F]{name, "true or false", func(f *F, v string) bool {
		*at(f) = new(v == "true")
		return v == "true" || v == "false"
	}}
}

// A pattern is the form of a text in requests, and how error texts describe it.
type pattern struct {
	form func() *regexp.Regexp
	want string
}

// The forms of the texts that bodies and query parameters have in common.
var (
	catalogID       = pattern{catalog.IDPattern, "an id of 1 to 128 letters, digits and . _ : / -"}
	locale          = pattern{catalog.LocalePattern, "a language and a region, such as it-IT"}
	country         = pattern{catalog.CountryPattern, "two upper-case letters, such as IT"}
	language        = pattern{catalog.LanguagePattern, "a language, such as it, or a language and a region, such as it-IT"}
	measurementType = pattern{catalog.MeasurementTypePattern, "1 to 64 of a-z, 0-9 and _, beginning with a letter, such as grounded"}
)
