package request

import "strconv"

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
