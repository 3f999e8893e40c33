// Package request reads requests: their bearer token, their query parameters, the media type and the JSON of their
// bodies, and the members of JSON objects, with a fault for each that is missing, unknown or wrong. It serves gateway
// and gateway/worker.
package request

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"aiv/gateway/problem"
	"aiv/store/strictjson"
)

// An Object is a JSON object whose members are read by name. Each reader adds a fault when the member has the wrong
// type or value; a missing member was reported by NewObject already and is read as the zero value.
type Object struct {
	*strictjson.Value
	At     *Location
	faults *problem.Faults
}

// NewObject returns v, found at the given location, as an object that must have exactly the members named. It adds a
// fault for each missing and each unknown member.
func NewObject(v *strictjson.Value, at *Location, faults *problem.Faults, members ...string) Object {
	return NewOpenObject(v, at, faults, members, nil)
}

// NewOpenObject is NewObject for an object whose optional members may be missing.
func NewOpenObject(v *strictjson.Value, at *Location, faults *problem.Faults, required, optional []string) Object {
	o := Object{v, at, faults}
	if v.Kind != strictjson.KindObject {
		faults.Add(at.String(), "must be an object, not "+v.Describe())
		return o
	}
	if hasExactly(v, required) {
		return o
	}
	for _, name := range required {
		if v.Member(name) == nil {
			o.Fault(name, "is required")
		}
	}
	for i := range v.Members {
		if name := v.Members[i].Name; !slices.Contains(required, name) && !slices.Contains(optional, name) {
			faults.AddUnknown(at.String(), name)
		}
	}
	return o
}

// hasExactly reports whether an object has exactly these members in this order, as most objects do.
func hasExactly(v *strictjson.Value, names []string) bool {
	if len(v.Members) != len(names) {
		return false
	}
	for i, name := range names {
		if v.Members[i].Name != name {
			return false
		}
	}
	return true
}

// Fault reports a fault of a member.
func (o Object) Fault(name, detail string) { o.faults.Add(o.At.String()+"/"+name, detail) }

// Text reads a string.
func (o Object) Text(name string) string {
	v := o.Member(name)
	if v == nil {
		return ""
	}
	if v.Kind != strictjson.KindString {
		o.Fault(name, "must be a string, not "+v.Describe())
	}
	return v.Text
}

// TextUpTo reads a string of at most a number of characters.
func (o Object) TextUpTo(name string, most int) string {
	text := o.Text(name)
	if len(text) > most && utf8.RuneCountInString(text) > most {
		o.Fault(name, fmt.Sprintf("must have at most %d characters", most))
	}
	return text
}

// Bool reads a boolean.
func (o Object) Bool(name string) bool {
	v := o.Member(name)
	if v == nil {
		return false
	}
	if v.Kind != strictjson.KindBool {
		o.Fault(name, "must be true or false, not "+v.Describe())
	}
	return v.Text == "true"
}

// Matching reads a string that matches form. want describes the form to the client.
func (o Object) Matching(name string, form *regexp.Regexp, want string) string {
	v := o.Member(name)
	if v == nil {
		return ""
	}
	if v.Kind != strictjson.KindString || !form.MatchString(v.Text) {
		o.Fault(name, "must be "+want)
	}
	return v.Text
}

// OneOf reads an optional string that must be one of the words. It returns nil if the member is missing.
func (o Object) OneOf(name string, words []string) *string {
	v := o.Member(name)
	if v == nil {
		return nil
	}
	if v.Kind != strictjson.KindString || !slices.Contains(words, v.Text) {
		o.Fault(name, "must be one of "+strings.Join(words, ", "))
	}
	return &v.Text
}

// Positive reads an integer of at least 1. One that exceeds int64 is read as the largest int64.
func (o Object) Positive(name string) int64 {
	v := o.Member(name)
	if v == nil {
		return 0
	}
	n, _ := strconv.ParseInt(v.Text, 10, 64) // 0 if the text is not an integer
	if v.Kind != strictjson.KindNumber || n < 1 {
		o.Fault(name, "must be an integer of at least 1")
	}
	return n
}

// Integer reads an integer from least to most.
func (o Object) Integer(name string, least, most int64) int64 {
	v := o.Member(name)
	if v == nil {
		return 0
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if v.Kind != strictjson.KindNumber || err != nil || n < least || n > most {
		o.Fault(name, fmt.Sprintf("must be an integer from %d to %d", least, most))
	}
	return n
}

// Array reads an array of least to most items. items names them to the client, in the plural.
func (o Object) Array(name, items string, least, most int) []strictjson.Value {
	v := o.Member(name)
	if v == nil {
		return nil
	}
	if v.Kind != strictjson.KindArray {
		o.Fault(name, "must be an array of "+items+", not "+v.Describe())
		return nil
	}
	if n := len(v.Items); n < least || n > most {
		o.Fault(name, fmt.Sprintf("must have %d to %d %s, not %d", least, most, items, n))
		return nil
	}
	return v.Items
}

// UniqueIDs reads an array of 1 to most different strings that match form. want describes the form to the client.
func (o Object) UniqueIDs(name string, most int, form *regexp.Regexp, want string) []string {
	values := o.Array(name, "ids", 1, most)
	if values == nil {
		return nil
	}
	ids := make([]string, len(values))
	first := make(map[string]int, len(values))
	for i, item := range values {
		at := name + "/" + strconv.Itoa(i)
		if item.Kind != strictjson.KindString || !form.MatchString(item.Text) {
			o.Fault(at, "must be "+want)
		} else if j, ok := first[item.Text]; ok {
			o.Fault(at, fmt.Sprintf("duplicates %s/%d", name, j))
		} else {
			first[item.Text] = i
		}
		ids[i] = item.Text
	}
	return ids
}

// A Location is where a value is in a body. Its text is made only for faults: a large settlement has thousands of
// values.
type Location struct {
	in   *Location // nil: name is the whole text
	name string    // of a member
	item int       // index in an array, if there is no name
}

// At returns the location with a JSON pointer in the form of a URI fragment [RFC 6901, 6], such as "#/body".
func At(pointer string) *Location { return &Location{name: pointer} }

// Member returns the location of a member.
func (l *Location) Member(name string) *Location { return &Location{in: l, name: name} }

// Item returns the location of an item of an array.
func (l *Location) Item(i int) *Location { return &Location{in: l, item: i} }

// String returns the JSON pointer.
func (l *Location) String() string {
	switch {
	case l.in == nil:
		return l.name
	case l.name != "":
		return l.in.String() + "/" + l.name
	}
	return l.in.String() + "/" + strconv.Itoa(l.item)
}
