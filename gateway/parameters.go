package gateway

import (
	"net/url"
	"slices"
	"strings"
)

// parameters are the query parameters of a request, in the order sent.
type parameters []parameter

type parameter struct{ name, value string }

// parse reads a query string. Unlike url.ParseQuery it keeps the order, so that errors name parameters in it.
func (p *parameters) parse(query string) error {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || strings.Contains(pair, ";") {
			return &problem{code: codeInvalidParameter, detail: "The query string is malformed: a name is not percent-encoded as it should be."}
		}
		v, err := url.QueryUnescape(rawValue)
		if err != nil {
			return invalidParameter(name, "is not percent-encoded as it should be")
		}
		*p = append(*p, parameter{name, v})
	}
	return nil
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

// take returns the values given under a name and removes them.
func (p *parameters) take(name string) (values []string) {
	rest := (*p)[:0]
	for _, q := range *p {
		if q.name == name {
			values = append(values, q.value)
		} else {
			rest = append(rest, q)
		}
	}
	*p = rest
	return values
}

// only returns a problem that names every parameter that the route does not have, and those given twice.
func (p parameters) only(known ...string) error {
	if f := p.faults(known); len(f) > 0 {
		return parameterProblem(f)
	}
	return nil
}

func (p parameters) faults(known []string) (f faults) {
	for i, q := range p {
		switch {
		case !slices.Contains(known, q.name):
			f = append(f, fault{Parameter: shown(q.name), Detail: "is not a parameter of this route"})
		case len(p[:i].get(q.name)) == 1:
			f = append(f, fault{Parameter: q.name, Detail: "is given more than once"})
		}
		if len(f) == maxFaults {
			break
		}
	}
	return f
}

// shown is a client's name as a problem repeats it.
func shown(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return strings.ToValidUTF8(name, "�")
}
