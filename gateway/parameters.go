package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"aiv/gateway/problem"
)

// parameters are the query parameters of a request, in the order sent. Lookups are linear, so their number is bounded.
type parameters []parameter

type parameter struct {
	name, value string
	fault       string // why the parameter cannot be used; empty: it can
}

// maxParameters is how many parameters a request may have, path included. The list with the most filters has 9.
const maxParameters = 32

func tooManyParameters() error {
	return &problem.Problem{Code: problem.InvalidParameter, Detail: fmt.Sprintf("A request may have at most %d query parameters.", maxParameters)}
}

// readParameters reads a query string, up to the first parameter that is one too many. Unlike url.ParseQuery it keeps the order, so that
// errors are reported in it, and keeps what cannot be decoded, so that it is reported with all other faults.
func readParameters(query string) (p parameters) {
	for query != "" && len(p) <= maxParameters {
		var pair string
		if pair, query, _ = strings.Cut(query, "&"); pair != "" {
			p = append(p, readParameter(pair))
		}
	}
	return p
}

// readParameter reads NAME=VALUE. A name that cannot be decoded stays as it was sent. A value that cannot be decoded is empty, so
// that it never equals another one.
func readParameter(pair string) parameter {
	rawName, rawValue, _ := strings.Cut(pair, "=")
	name, nameErr := url.QueryUnescape(rawName)
	value, valueErr := url.QueryUnescape(rawValue)
	if nameErr != nil {
		name = rawName
	}
	switch {
	case name == "":
		return parameter{fault: "a parameter has no name"}
	case strings.Contains(pair, ";"):
		return parameter{name: name, fault: "contains a semicolon; parameters are separated by &, and ; in a value is written %3B"}
	case nameErr != nil || valueErr != nil:
		return parameter{name: name, fault: "is not percent-encoded correctly"}
	}
	return parameter{name: name, value: value}
}

// get returns the values given under a name.
func (p parameters) get(name string) (values []string) {
	for _, q := range p {
		if q.name == name {
			values = append(values, q.value)
		}
	}
	return values
}

// take returns the parameters of a name and removes them.
func (p *parameters) take(name string) (taken parameters) {
	rest := (*p)[:0]
	for _, q := range *p {
		if q.name == name {
			taken = append(taken, q)
		} else {
			rest = append(rest, q)
		}
	}
	*p = rest
	return taken
}

// only returns a problem that names every parameter that the route does not have, and every other fault.
func (p parameters) only(known ...string) error {
	if f := p.faults(known); len(f) > 0 {
		return parameterProblem(f)
	}
	return nil
}

// faults reports unknown, repeated and malformed parameters, one fault of each.
func (p parameters) faults(known []string) (f problem.Faults) {
	for i, q := range p {
		switch {
		case q.fault != "":
			f.AddParameter(q.name, q.fault)
		case !slices.Contains(known, q.name):
			f.AddParameter(q.name, "unknown parameter")
		case len(p[:i].get(q.name)) > 0:
			f.AddParameter(q.name, "is given more than once")
		}
	}
	return f
}

// encode returns the parameters as a query string.
func (p parameters) encode() string {
	var b strings.Builder
	for i, q := range p {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(q.name) + "=" + url.QueryEscape(q.value))
	}
	return b.String()
}
