package jsonl

import (
	"regexp"

	"aiv/store"
)

// The functions below read members that must match a pattern. Field reports a wrong type; they report a wrong form only
// where the type is right.

// Matching reads a string that matches the pattern.
func Matching(l *Line, name string, pattern *regexp.Regexp) string {
	before := len(l.errs)
	v := Field[string](l, name)
	if len(l.errs) == before && !pattern.MatchString(v) {
		l.Errorf("%s must match %s", name, pattern)
	}
	return v
}

// MatchingOrNull reads a string that matches the pattern, or null.
func MatchingOrNull(l *Line, name string, pattern *regexp.Regexp) *string {
	before := len(l.errs)
	v := Field[Null[string]](l, name).Ptr()
	if len(l.errs) == before && v != nil && !pattern.MatchString(*v) {
		l.Errorf("%s must match %s or be null", name, pattern)
	}
	return v
}

// Between reads an integer from low to high.
func Between(l *Line, name string, low, high int) int {
	before := len(l.errs)
	v := Field[int](l, name)
	if len(l.errs) == before && (v < low || v > high) {
		l.Errorf("%s must be from %d to %d", name, low, high)
	}
	return v
}

// List reads an array of distinct strings that match the pattern. With a nil pattern any string but the empty one does.
func List(l *Line, name string, pattern *regexp.Regexp) []string {
	v := Field[[]string](l, name)
	l.checkList(name, v, pattern)
	return v
}

// ListOrNull reads what List does, or null.
func ListOrNull(l *Line, name string, pattern *regexp.Regexp) []string {
	v := Field[Null[[]string]](l, name)
	l.checkList(name, v.V, pattern)
	return v.V
}

func (l *Line) checkList(name string, list []string, pattern *regexp.Regexp) {
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		switch {
		case pattern != nil && !pattern.MatchString(v):
			l.Errorf("%s must contain only strings that match %s", name, pattern)
			return
		case v == "":
			l.Errorf("%s must not contain an empty string", name)
			return
		case seen[v]:
			l.Errorf("%s contains %q twice", name, v)
			return
		}
		seen[v] = true
	}
}

// ID reads the identifier of a record with this prefix. of names the record in errors: "an account".
func ID(l *Line, name, prefix, of string) store.ID {
	before := len(l.errs)
	text := Field[string](l, name)
	if len(l.errs) > before {
		return store.ID{}
	}
	id, err := store.ParseID(prefix, text)
	if err != nil {
		l.Errorf("%s must be %s's id", name, of)
	}
	return id
}

// IDOrNull reads what ID does, or null.
func IDOrNull(l *Line, name, prefix, of string) *store.ID {
	before := len(l.errs)
	text := Field[Null[string]](l, name).Ptr()
	if text == nil || len(l.errs) > before {
		return nil
	}
	id, err := store.ParseID(prefix, *text)
	if err != nil {
		l.Errorf("%s must be %s's id or null", name, of)
	}
	return &id
}
