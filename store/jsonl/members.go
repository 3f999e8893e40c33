package jsonl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/store"
	"aiv/store/strictjson"
)

// readable are the types of members.
type readable interface {
	string | []string | bool | int | float64 | time.Time
}

// Field reads a required member of type T, which must not be null.
func Field[T readable](l *Line, name string) T {
	v, _ := read[T](l, name)
	return v
}

// FieldOrNull reads a required member of type T, and returns nil for null.
func FieldOrNull[T readable](l *Line, name string) *T {
	m := l.member(name)
	if m == nil || m.Kind == strictjson.KindNull {
		return nil
	}
	v := new(T)
	if want, ok := decode(m, v); !ok {
		l.Errorf("%s must be %s or null", name, want)
		return nil
	}
	return v
}

// The functions below read members that must have a form. They report a wrong form only where the type is right.

// OneOf reads a string that must be one of the values.
func OneOf(l *Line, name string, values ...string) string {
	v, ok := read[string](l, name)
	if ok && !slices.Contains(values, v) {
		l.Errorf("%s must be one of %s", name, strings.Join(values, ", "))
	}
	return v
}

// Text reads a string that is not blank.
func Text(l *Line, name string) string {
	v, ok := read[string](l, name)
	if ok && strings.TrimSpace(v) == "" {
		l.Errorf("%s must not be empty", name)
	}
	return v
}

// Matching reads a string that matches the pattern.
func Matching(l *Line, name string, pattern *regexp.Regexp) string {
	v, ok := read[string](l, name)
	if ok && !pattern.MatchString(v) {
		l.Errorf("%s must match %s", name, pattern)
	}
	return v
}

// MatchingOrNull reads a string that matches the pattern, or null.
func MatchingOrNull(l *Line, name string, pattern *regexp.Regexp) *string {
	v := FieldOrNull[string](l, name)
	if v != nil && !pattern.MatchString(*v) {
		l.Errorf("%s must match %s or be null", name, pattern)
	}
	return v
}

// Between reads an integer from low to high.
func Between(l *Line, name string, low, high int) int {
	v, ok := read[int](l, name)
	if ok && (v < low || v > high) {
		l.Errorf("%s must be from %d to %d", name, low, high)
	}
	return v
}

// List reads an array of distinct strings that match the pattern. A nil pattern accepts any string that is not empty.
func List(l *Line, name string, pattern *regexp.Regexp) []string {
	v := Field[[]string](l, name)
	l.checkList(name, v, pattern)
	return v
}

// ListOrNull reads what List does, or null.
func ListOrNull(l *Line, name string, pattern *regexp.Regexp) []string {
	v := FieldOrNull[[]string](l, name)
	if v == nil {
		return nil
	}
	l.checkList(name, *v, pattern)
	return *v
}

// checkList records the first error of a list's elements.
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
	text, ok := read[string](l, name)
	if !ok {
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
	text := FieldOrNull[string](l, name)
	if text == nil {
		return nil
	}
	id, err := store.ParseID(prefix, *text)
	if err != nil {
		l.Errorf("%s must be %s's id or null", name, of)
	}
	return &id
}

// read reads a required member that must not be null. It reports false after it has recorded an error.
func read[T readable](l *Line, name string) (T, bool) {
	// zero is returned with an error, as decode may have set v to a part of a wrong value.
	var v, zero T
	m := l.member(name)
	if m == nil {
		return zero, false
	}
	if m.Kind == strictjson.KindNull {
		l.Errorf("%s must not be null", name)
		return zero, false
	}
	if want, ok := decode(m, &v); !ok {
		l.Errorf("%s must be %s", name, want)
		return zero, false
	}
	return v, true
}

// decode stores v in *to, whose type must be readable. It reports false if the value must be something else, which it
// describes.
func decode(v *strictjson.Value, to any) (want string, ok bool) {
	switch to := to.(type) {
	case *string:
		*to = v.Text
		return "a string", v.Kind == strictjson.KindString
	case *[]string:
		*to = make([]string, len(v.Items))
		for i, item := range v.Items {
			(*to)[i] = item.Text
		}
		notString := func(item strictjson.Value) bool { return item.Kind != strictjson.KindString }
		return "an array of strings", v.Kind == strictjson.KindArray && !slices.ContainsFunc(v.Items, notString)
	case *bool:
		*to = v.Text == "true"
		return "true or false", v.Kind == strictjson.KindBool
	// A number with a fraction or an exponent is no integer here, even if its value is.
	case *int:
		n, err := strconv.Atoi(v.Text)
		*to = n
		return "an integer", v.Kind == strictjson.KindNumber && err == nil
	case *float64:
		n, err := strconv.ParseFloat(v.Text, 64)
		*to = n
		return "a number", v.Kind == strictjson.KindNumber && err == nil
	case *time.Time:
		t, err := store.ParseTime(v.Text)
		*to = t
		return "an RFC 3339 time", v.Kind == strictjson.KindString && err == nil
	}
	panic(fmt.Sprintf("a %T is not readable", to))
}
