package store

import (
	"regexp"
)

// Members of a line that have a form. A fault of type has been told by Field; these add the fault of form.

// Matching reads a member that must be a string of the given form.
func Matching(l *Line, name string, form *regexp.Regexp) string {
	before := len(l.faults)
	v := Field[string](l, name)
	if len(l.faults) == before && !form.MatchString(v) {
		l.Fault("%s must match %s", name, form)
	}
	return v
}

// MatchingOrNull reads a member that must be a string of the given form or null.
func MatchingOrNull(l *Line, name string, form *regexp.Regexp) *string {
	before := len(l.faults)
	v := Field[Null[string]](l, name).Ptr()
	if len(l.faults) == before && v != nil && !form.MatchString(*v) {
		l.Fault("%s must match %s or be null", name, form)
	}
	return v
}

// List reads a member that must be an array of strings of the given form (nil: any but the empty one), none of them
// twice.
func List(l *Line, name string, form *regexp.Regexp) []string {
	v := Field[[]string](l, name)
	l.checkList(name, v, form)
	return v
}

// ListOrNull is List for a member that may be null.
func ListOrNull(l *Line, name string, form *regexp.Regexp) []string {
	v := Field[Null[[]string]](l, name)
	l.checkList(name, v.V, form)
	return v.V
}

func (l *Line) checkList(name string, list []string, form *regexp.Regexp) {
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		switch {
		case form != nil && !form.MatchString(v):
			l.Fault("%s must hold what matches %s", name, form)
			return
		case v == "":
			l.Fault("%s must not hold an empty string", name)
			return
		case seen[v]:
			l.Fault("%s must not hold %q twice", name, v)
			return
		}
		seen[v] = true
	}
}

// Identity reads a member that must be the id, with the given prefix, of what is said: "an account".
func Identity(l *Line, name, prefix, of string) ID {
	before := len(l.faults)
	text := Field[string](l, name)
	if len(l.faults) > before {
		return ID{}
	}
	id, err := ParseID(prefix, text)
	if err != nil {
		l.Fault("%s must be %s's id", name, of)
	}
	return id
}

// IdentityOrNull is Identity for a member that may be null.
func IdentityOrNull(l *Line, name, prefix, of string) *ID {
	before := len(l.faults)
	text := Field[Null[string]](l, name).Ptr()
	if text == nil || len(l.faults) > before {
		return nil
	}
	id, err := ParseID(prefix, *text)
	if err != nil {
		l.Fault("%s must be %s's id or null", name, of)
	}
	return &id
}
