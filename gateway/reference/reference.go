// Package reference writes the API down for those who use it: as an OpenAPI document and as a page, with a console.
//
// Both are made from one description, an [API], which package gateway gives from the tables that it serves by, from the
// words in words.go, and from examples.json, which holds what the golden files show. So a route, a filter, a member or a
// problem that the gateway has can't be missing here, and none can be described that it lacks. The package imports no other
// of the project's.
package reference

// An API is what is described.
type API struct {
	Base    string // path of the one address
	Version string
	Scopes  []string

	Routes   []Route
	Schemas  []Named // that are shared, each after those it refers to
	Problems []Problem

	MaxBody   int // bytes
	MaxLimit  int // items of a page
	PageLimit int // without a limit
	KeyLimit  int // characters of an idempotency key
	RateLimit int // requests a minute, where neither plan nor credential has its own
}

// A Route is one operation.
type Route struct {
	Method, Path string
	Scopes       []string // any of them is enough
	Entitled     bool     // its plan must carry api_access before anything else is looked at
	Parameters   []Parameter
	Body         string // the shared schema of its body, if it has one
	Status       int    // of its success
	Answer       string // the shared schema of that
	List         bool   // the answer is a page
	Tagged       bool   // the answer has an ETag
	Codes        []string
}

// Name is the method and the path, as in "GET /v1/runs".
func (r *Route) Name() string { return r.Method + " " + r.Path }

// A Parameter stands in the query, the path or the header of a request.
type Parameter struct {
	Name, In string
	Required bool
	Is       string // what the value must be, for people
	Schema   Schema
}

// Named is a shared schema.
type Named struct {
	Name   string
	Schema Schema
}

// A Problem is an answer other than success.
type Problem struct {
	Code   string
	Status int
	Title  string
	Check  string // the run check that it comes from, if from one
}

func (a *API) problem(code string) *Problem {
	for i := range a.Problems {
		if a.Problems[i].Code == code {
			return &a.Problems[i]
		}
	}
	panic("the code " + code + " is no problem's")
}

func (a *API) schema(name string) *Schema {
	for i := range a.Schemas {
		if a.Schemas[i].Name == name {
			return &a.Schemas[i].Schema
		}
	}
	panic("there is no schema " + name)
}
