package request

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"aiv/gateway/problem"
)

// Parameters are the query parameters of a request, in the order sent. Lookups are linear, so their number is bounded.
type Parameters []Parameter

// A Parameter is one NAME=VALUE.
type Parameter struct {
	Name, Value string
	Fault       string // why the parameter cannot be used; empty: it can
}

// IsFaulty reports whether the parameter cannot be used.
func (p Parameter) IsFaulty() bool { return p.Fault != "" }

// MaxParameters bounds the number of a request's parameters, path included. The route with the most has 18.
const MaxParameters = 32

// TooManyParameters reports more than MaxParameters.
func TooManyParameters() error {
	return &problem.Problem{Code: problem.InvalidParameter, Detail: fmt.Sprintf("A request may have at most %d query parameters.", MaxParameters)}
}

// ReadParameters reads a query string, up to the first parameter that is one too many. Unlike url.ParseQuery it keeps
// the order, so that errors are reported in it, and keeps what cannot be decoded, so that it is reported with all other
// faults.
func ReadParameters(query string) (p Parameters) {
	for query != "" && len(p) <= MaxParameters {
		var pair string
		if pair, query, _ = strings.Cut(query, "&"); pair != "" {
			p = append(p, readParameter(pair))
		}
	}
	return p
}

// readParameter reads NAME=VALUE. A name that cannot be decoded stays as it was sent. A value that cannot be decoded is
// empty, so that it never equals another one.
func readParameter(pair string) Parameter {
	rawName, rawValue, _ := strings.Cut(pair, "=")
	name, nameErr := url.QueryUnescape(rawName)
	value, valueErr := url.QueryUnescape(rawValue)
	if nameErr != nil {
		name = rawName
	}
	switch {
	case name == "":
		return Parameter{Fault: "a parameter has no name"}
	case strings.Contains(pair, ";"):
		return Parameter{Name: name, Fault: "contains a semicolon; parameters are separated by &, and ; in a value is written %3B"}
	case nameErr != nil || valueErr != nil:
		return Parameter{Name: name, Fault: "is not percent-encoded correctly"}
	}
	return Parameter{Name: name, Value: value}
}

// Get returns the values given under a name.
func (p Parameters) Get(name string) (values []string) {
	for _, q := range p {
		if q.Name == name {
			values = append(values, q.Value)
		}
	}
	return values
}

// Take returns the parameters of a name and removes them.
func (p *Parameters) Take(name string) (taken Parameters) {
	rest := (*p)[:0]
	for _, q := range *p {
		if q.Name == name {
			taken = append(taken, q)
		} else {
			rest = append(rest, q)
		}
	}
	*p = rest
	return taken
}

// None returns a problem that names every parameter, for a route that has none.
func (p Parameters) None() error {
	if f := p.Faults(nil); len(f) > 0 {
		return InvalidParameters(f)
	}
	return nil
}

// Faults reports unknown, repeated and malformed parameters, one fault of each.
func (p Parameters) Faults(known []string) (f problem.Faults) {
	for i, q := range p {
		switch {
		case q.Fault != "":
			f.AddParameter(q.Name, q.Fault)
		case !slices.Contains(known, q.Name):
			f.AddParameter(q.Name, "unknown parameter")
		case len(p[:i].Get(q.Name)) > 0:
			f.AddParameter(q.Name, "is given more than once")
		}
	}
	return f
}

// InvalidParameters reports faults of query parameters.
func InvalidParameters(f problem.Faults) *problem.Problem {
	return &problem.Problem{Code: problem.InvalidParameter, Detail: "The query parameters are not valid for this route.", Errors: f}
}

// Encode returns the parameters as a query string.
func (p Parameters) Encode() string {
	var b strings.Builder
	for i, q := range p {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(q.Name) + "=" + url.QueryEscape(q.Value))
	}
	return b.String()
}
