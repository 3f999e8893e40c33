package problem

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Fault is one of a problem's errors: a location in the body or the name of a query parameter, and what is wrong
// there.
type Fault struct {
	Pointer   string  `json:"pointer,omitempty"`
	Parameter *string `json:"parameter,omitempty"` // a pointer, because a query can have a parameter without a name
	Detail    string  `json:"detail"`
}

// Faults collects everything that is wrong with a request.
type Faults []Fault

// MaxFaults bounds a problem document. The largest legal run has 550 ids, each of which may be at fault.
const MaxFaults = 1000

// Add reports a fault at a JSON pointer into the body, such as "#/body/country".
func (f *Faults) Add(pointer, detail string) { f.add(Fault{Pointer: pointer, Detail: detail}) }

// AddUnlessAt is Add unless a fault at the pointer is reported already.
func (f *Faults) AddUnlessAt(pointer, detail string) {
	if !slices.ContainsFunc(*f, func(other Fault) bool { return other.Pointer == pointer }) {
		f.Add(pointer, detail)
	}
}

// AddParameter reports a fault of a query parameter, once.
func (f *Faults) AddParameter(name, detail string) {
	name = shorten(name)
	known := func(other Fault) bool {
		return other.Parameter != nil && *other.Parameter == name && other.Detail == detail
	}
	if !slices.ContainsFunc(*f, known) {
		f.add(Fault{Parameter: &name, Detail: detail})
	}
}

// AddMember reports a fault of the member of an object at a pointer.
func (f *Faults) AddMember(at, name, detail string) { f.Add(pointer(at, name), detail) }

// AddUnknown reports a member that the object at a pointer does not have. A long name is cut, and not part of the
// pointer.
func (f *Faults) AddUnknown(at, name string) {
	if len(name) > maxName {
		f.Add(at, "has an unknown member "+shorten(name))
		return
	}
	f.Add(pointer(at, name), "unknown member")
}

func (f *Faults) add(fault Fault) {
	if len(*f) < MaxFaults {
		*f = append(*f, fault)
	}
}

// pointer appends a member's name to a pointer, written as a URI fragment [RFC 6901, 6].
func pointer(at, name string) string {
	return at + "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

// maxName bounds the part of a client's name that is returned, in bytes, so that responses do not grow with requests.
const maxName = 64

// shorten cuts a name to maxName, marked with ….
func shorten(name string) string {
	if len(name) <= maxName {
		return strings.ToValidUTF8(name, "\uFFFD")
	}
	end := maxName
	for end > maxName-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return strings.ToValidUTF8(name[:end], "\uFFFD") + "…"
}
