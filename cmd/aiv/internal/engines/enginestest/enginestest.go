// Package enginestest has fakes of the APIs that package engines is a client of. They are for tests, and written from
// the documents of the APIs: a fake checks the method, the path, the headers and every member of a request, and
// rejects what the API rejects, in the form of the API's errors. There is no request that a fake accepts silently.
package enginestest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the key that fakes accept.
const Key = "test-key-0123456789-abcdefghijklmnopqrstuvwxyz"

// A Server is a fake of an API.
type Server struct {
	URL string // the base address

	api  api
	mu   sync.Mutex // guards the fields below
	next []http.HandlerFunc
	got  []Request
	keys map[string]bool
}

// A Request is one that the fake has accepted.
type Request struct {
	Header http.Header
	Path   string
	Body   string
}

// New starts a fake of the API of an engine, which ends with the test.
func New(t testing.TB, engine string) *Server {
	t.Helper()
	a, ok := apis[engine]
	if !ok {
		t.Fatalf("there is no fake of %s", engine)
	}
	s := &Server{api: a, keys: map[string]bool{Key: true}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + a.base
	return s
}

// Then answers the next request that is accepted with a handler. Without one, the fake gives a short answer.
func (s *Server) Then(handlers ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, handlers...)
}

// Accept replaces the keys that the fake accepts.
func (s *Server) Accept(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = make(map[string]bool)
	for _, k := range keys {
		s.keys[k] = true
	}
}

// Requests returns the requests that were accepted.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.got...)
}

// Answer returns a handler that sends a body with a status. Headers are names and values in turns.
func Answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// Short returns the body of a short answer, as the API gives it.
func (s *Server) Short() string { return s.api.short }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if fault := s.check(r, body); fault != nil {
		s.api.fail(w, fault)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, Request{r.Header.Clone(), r.URL.EscapedPath(), string(body)})
	handler := Answer(200, s.api.short)
	if len(s.next) > 0 {
		handler, s.next = s.next[0], s.next[1:]
	}
	s.mu.Unlock()
	handler(w, r)
}

// A fault is why the API rejects a request.
type fault struct {
	status           int
	kind, code, text string
}

// invalid returns the fault of a request that the API does not understand, a 400.
func invalid(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "", "", fmt.Sprintf(format, args...)}
}

// check returns why the API rejects a request, or nil. It looks at the path and the method, then the headers, the
// key, and the body.
func (s *Server) check(r *http.Request, body []byte) *fault {
	a := &s.api
	model, ok := a.model(r)
	if !ok {
		return &fault{404, "", "", "Not found: " + r.URL.Path}
	}
	if r.Method != http.MethodPost {
		return &fault{405, "", "", "Method not allowed"}
	}
	if len(r.URL.RawQuery) > 0 {
		return invalid("unexpected query")
	}
	want := map[string]string{"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "aiv-work/1"}
	maps.Copy(want, a.headers)
	for name, value := range want {
		if r.Header.Get(name) != value {
			return invalid("header %s: %q", name, r.Header.Get(name))
		}
	}
	for name := range r.Header {
		if _, ok := want[name]; !ok && name != a.keyHeader && name != "Accept-Encoding" && name != "Content-Length" {
			return invalid("unexpected header %s", name)
		}
	}
	key, ok := strings.CutPrefix(r.Header.Get(a.keyHeader), a.keyPrefix)
	s.mu.Lock()
	known := s.keys[key] || key == "" && a.keyless
	s.mu.Unlock()
	if !ok && !a.keyless || !known {
		return a.badKey(key)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	// Numbers stay as text, so that a form can tell integers from other numbers.
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return invalid("invalid JSON: %v", err)
	}
	if path := a.form.check(v, ""); path != "" {
		return a.unknown(path)
	}
	// This cannot panic: the form of every API is an object.
	o := v.(map[string]any)
	if model == "" {
		model, _ = o["model"].(string)
	}
	if a.reject == nil {
		return nil
	}
	return a.reject(model, o)
}

// A form is what a JSON value must be: a constant, a kind, a list of one form, or an object with exactly its members.
// Names that end with ? may be missing.
type form struct{ of any }

// A kind is a form that many values fit.
type kind string

// The kinds of values.
const (
	text    kind = "a string"
	count   kind = "a positive integer"
	country kind = "a country"
	blocks  kind = "a list of blocks"
)

// fields are the members of an object, by name.
type fields map[string]any

// check returns the path of what does not fit, or "".
func (f form) check(v any, path string) string {
	switch want := f.of.(type) {
	case fields:
		o, ok := v.(map[string]any)
		if !ok {
			return path
		}
		for name := range o {
			if _, required := want[name]; !required {
				if _, optional := want[name+"?"]; !optional {
					return join(path, name)
				}
			}
		}
		for name, inner := range want {
			bare, optional := strings.CutSuffix(name, "?")
			member, ok := o[bare]
			if !ok && optional {
				continue
			}
			if at := (form{inner}).check(member, join(path, bare)); at != "" {
				return at
			}
		}
	case []any: // the items, in order
		items, ok := v.([]any)
		if !ok || len(items) != len(want) {
			return path
		}
		for i := range want {
			if at := (form{want[i]}).check(items[i], fmt.Sprintf("%s.%d", path, i)); at != "" {
				return at
			}
		}
	case either:
		for _, one := range want {
			if (form{one}).check(v, path) == "" {
				return ""
			}
		}
		return path
	case kind:
		if !want.fits(v) {
			return path
		}
	default:
		if v != want {
			return path
		}
	}
	return ""
}

// either is a choice of forms.
type either []any

// fits reports whether a value is of a kind.
func (k kind) fits(v any) bool {
	s, isText := v.(string)
	switch k {
	case text:
		return isText && s != ""
	case country:
		return len(s) == 2 && strings.ToUpper(s) == s
	case blocks:
		items, ok := v.([]any)
		return ok && len(items) > 0
	}
	n, ok := v.(json.Number)
	return ok && !strings.ContainsAny(n.String(), ".-eE") && n.String() != "0"
}

// join returns the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
