package problem

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// A Fault is one of a problem's errors: a location in the body or the name of a query parameter, and what is wrong there.
type Fault struct {
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Detail    string `json:"detail"`
}

// Faults collects everything that is wrong with a request.
type Faults []Fault

// MaxFaults bounds a problem document. The largest legal run has 550 ids, each of which may be at fault.
const MaxFaults = 1000

// Add reports a fault at a JSON pointer into the body, such as "#/body/country".
func (f *Faults) Add(pointer, detail string) { f.add(Fault{Pointer: pointer, Detail: detail}) }

// AddParameter reports a fault of a query parameter.
func (f *Faults) AddParameter(name, detail string) {
	f.add(Fault{Parameter: Shorten(name), Detail: detail})
}

func (f *Faults) add(fault Fault) {
	if len(*f) < MaxFaults {
		*f = append(*f, fault)
	}
}

// Pointer appends a member's name to a pointer, written as a URI fragment [RFC 6901, 6].
func Pointer(at, name string) string {
	return at + "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(Shorten(name)))
}

// Shorten cuts a name that the client sent to 64 bytes, marked with …, so that responses do not grow with requests.
func Shorten(name string) string {
	if len(name) <= 64 {
		return strings.ToValidUTF8(name, "\uFFFD")
	}
	end := 64
	for end > 64-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return strings.ToValidUTF8(name[:end], "\uFFFD") + "…"
}
