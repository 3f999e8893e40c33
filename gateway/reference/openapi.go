package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A description is the part of the OpenAPI document that the page shows. Members that start with x- are extensions:
//
//	x-shows        of a tag: a generated section, "headers" or "problems"
//	x-scopes       of an operation: the credential needs one of them; none: any valid key
//	x-codes        of a response: its problem codes
//	x-run-checks   of a response: its codes are those with a check and its status
//	x-problems     of the schema ProblemCode: each code, its status and meaning, and the run check that reports it
type description struct {
	Info       struct{ Title, Version, Summary, Description string }
	Servers    []struct{ URL string }
	Tags       []tag
	Paths      ordered[pathItem]
	Components struct {
		Schemas    ordered[schema]
		Parameters ordered[parameter]
		Headers    ordered[header]
		Responses  ordered[response]
	}
}

type tag struct {
	Name, Description string
	Shows             string `json:"x-shows"` // headers, problems or empty: what the page shows besides the routes
}

type pathItem struct{ Get, Post, Patch, Delete *operation }

// An operation is a method of a path. Scopes is nil if any valid key may use it.
type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Scopes                            []string `json:"x-scopes"`
	Parameters                        []parameter
	RequestBody                       *struct{ Content ordered[media] }
	Responses                         ordered[response]
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                schema
}

type header struct{ Description string }

// A response either refers to a shared one by Ref, or has the other members.
type response struct {
	Ref       string `json:"$ref"`
	Content   ordered[media]
	Codes     []string `json:"x-codes"`
	RunChecks bool     `json:"x-run-checks"`
}

type media struct{ Schema schema }

// A schema is the part of JSON Schema that openapi.json uses. Package json matches the names of fields without a tag in
// any case, so MinLength is minLength.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Description          string
	Enum                 []string
	Const                string // the only value
	Format, Pattern      string // Format is date-time, for example
	Minimum, Maximum     *int
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	UniqueItems          bool // no duplicates
	Default              any
	Items                *schema
	Required             []string
	Properties           ordered[schema]
	AnyOf                []schema
	Problems             []problemCode `json:"x-problems"` // of ProblemCode only
}

type problemCode struct {
	Code        string
	Status      int
	Check       string // the run check that reports it; empty: none
	Description string
}

// types are the alternatives of the keyword type, which is a string or an array.
type types []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *types) UnmarshalJSON(text []byte) error {
	// A single type.
	if text[0] == '"' {
		*t = make(types, 1)
		return json.Unmarshal(text, &(*t)[0])
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// ordered is a JSON object whose members keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	// The opening brace.
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member[T]{Name: name.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

// get returns the member with the given name, or nil.
func (o ordered[T]) get(name string) *T {
	for i := range o {
		if o[i].Name == name {
			return &o[i].Value
		}
	}
	return nil
}

// nameOf returns the name of the component that a reference refers to.
func nameOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// resolve returns the component that a reference refers to.
func resolve[T any](components ordered[T], ref string) *T {
	v := components.get(nameOf(ref))
	if v == nil {
		panic("openapi.json has no " + ref)
	}
	return v
}

// operations returns the operations of a path, in the order in which the page shows them.
func (p *pathItem) operations() ordered[*operation] {
	all := ordered[*operation]{{"GET", p.Get}, {"POST", p.Post}, {"PATCH", p.Patch}, {"DELETE", p.Delete}}
	return slices.DeleteFunc(all, func(m member[*operation]) bool { return m.Value == nil })
}

// codes returns all problem codes.
func (d *description) codes() []problemCode { return d.Components.Schemas.get("ProblemCode").Problems }

// codesOf returns the problem codes that an operation can return with a response.
func (d *description) codesOf(m *member[response]) (codes []problemCode) {
	r := &m.Value
	if r.Ref != "" {
		r = resolve(d.Components.Responses, r.Ref)
	}
	for _, c := range d.codes() {
		if slices.Contains(r.Codes, c.Code) || r.RunChecks && c.Check != "" && strconv.Itoa(c.Status) == m.Name {
			codes = append(codes, c)
		}
	}
	return codes
}
