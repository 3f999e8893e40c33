package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"aiv/store"
	"aiv/store/batch"
)

// maxBody is the largest body, in bytes.
const maxBody = 1 << 20

// What a process holds of bodies at a time, in bytes: those that are being read, and those of runs that wait to be written.
// As many mebibytes as there are clients would be more than a machine has. One credential gets a part only, so that it
// can't keep the others out by sending slowly.
const (
	maxBodies      = 32 << 20
	maxBodiesOfOne = maxBodies / 4
)

// bodies is the room that is taken, by credential.
type bodies struct {
	mu    sync.Mutex
	taken int
	by    map[store.ID]int
}

// take takes room for n bytes more, or gives back as many, unless there is none.
func (b *bodies) take(credential store.ID, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && (b.taken+n > maxBodies || b.by[credential]+n > maxBodiesOfOne) {
		return false
	}
	if b.by == nil {
		b.by = make(map[store.ID]int)
	}
	b.taken += n
	if b.by[credential] += n; b.by[credential] == 0 {
		delete(b.by, credential)
	}
	return true
}

// readBody reads a body into memory that grows as it comes, whatever length is announced, and that is x's until it ends.
func (x *exchange) readBody(r *http.Request) ([]byte, error) {
	tooLarge := &problem{code: codeBodyTooLarge, detail: fmt.Sprintf("The body may have at most %d bytes.", maxBody)}
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	size := min(r.ContentLength+1, 16<<10) // room to meet the end without growing, for most
	if size <= 0 {
		size = 4096
	}
	var body []byte
	for len(body) <= maxBody {
		if len(body) == cap(body) {
			more := max(int(size), len(body))
			if !x.bodies.take(x.credential().ID, more) {
				return nil, batch.ErrOverloaded
			}
			x.held += more
			body = slices.Grow(body, more)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if len(body) > maxBody {
				return nil, tooLarge
			}
			return body, nil
		case err != nil:
			return nil, &problem{code: codeInvalidJSON, detail: "The body ended before its announced length, or could not be read."}
		}
	}
	return nil, tooLarge
}

// faults collects all that is wrong with what a client sent.
type faults []fault

// A fault is one of a problem's errors: a place in the body or the name of a parameter, and what is wrong there.
type fault struct {
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Detail    string `json:"detail"`
}

// maxFaults bounds a problem document: no body that could become valid has as many faults.
const maxFaults = 1000

func (f *faults) add(pointer, detail string) {
	if len(*f) < maxFaults {
		*f = append(*f, fault{Pointer: pointer, Detail: detail})
	}
}

// object is a JSON object whose members are read by name.
type object struct {
	value
	at     string // its pointer
	faults *faults
}

// object adds a fault for each of the wanted members that is missing and each other one that is there.
func (f *faults) object(v value, at string, wanted ...string) object {
	o := object{v, at, f}
	if v.kind != kindObject {
		f.add(at, "must be an object, not "+v.describe())
		return o
	}
	for _, name := range wanted {
		if _, ok := v.member(name); !ok {
			f.add(at+"/"+name, "is required")
		}
	}
	for _, m := range v.members {
		if !slices.Contains(wanted, m.name) {
			f.add(at+"/"+pointerToken(shown(m.name)), "is not a member here")
		}
	}
	return o
}

// text reads a string.
func (o object) text(name string) string {
	v, ok := o.member(name)
	if ok && v.kind != kindString {
		o.faults.add(o.at+"/"+name, "must be a string, not "+v.describe())
	}
	return v.text
}

// pointerToken writes a member's name as RFC 6901 has it in a URI fragment.
func pointerToken(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
