package gateway

import (
	"reflect"
	"strconv"

	"aiv/gateway/problem"
	"aiv/gateway/reference"
)

// A form is what the reference tells of a route beside what the table of routes says: its parameters, its answer.
type form struct {
	answer any // a value of its wire type; of a list's items

	list       bool
	tagged     bool // with an ETag
	parameters []reference.Parameter
}

// form describes a list by its own filters and wire type.
func (l *list[F, T]) form() form {
	d := form{answer: l.wire(new(T)), list: true, tagged: l.revision != nil}
	for _, f := range l.filters {
		d.parameters = append(d.parameters, reference.Parameter{Name: f.name, In: "query", Is: f.is, Schema: f.form})
	}
	d.parameters = append(d.parameters,
		reference.Parameter{Name: "limit", In: "query", Is: "an integer from 1 to " + strconv.Itoa(maxLimit),
			Schema: reference.Schema{Type: "integer", Min: new(1), Max: new(maxLimit), Default: defaultLimit}},
		reference.Parameter{Name: "cursor", In: "query", Is: "a next_cursor of this list with these filters",
			Schema: reference.Schema{Type: "string", Min: new(1), Max: new(maxCursor)}})
	if d.tagged {
		d.parameters = append(d.parameters, reference.Parameter{Name: "If-None-Match", In: "header", Is: "one ETag or several",
			Schema: reference.Schema{Type: "string"}})
	}
	return d
}

// wireNames are the names that the wire types have in the reference.
var wireNames = map[reflect.Type]string{
	reflect.TypeFor[identity]():               "Identity",
	reflect.TypeFor[identityCredential]():     "Credential",
	reflect.TypeFor[identityPlan]():           "Plan",
	reflect.TypeFor[runCreated]():             "CreatedRun",
	reflect.TypeFor[runDocument]():            "Run",
	reflect.TypeFor[runJobs]():                "RunJobs",
	reflect.TypeFor[modelDocument]():          "Model",
	reflect.TypeFor[groundedSearch]():         "GroundedSearch",
	reflect.TypeFor[questionDocument]():       "Question",
	reflect.TypeFor[recommendationDocument](): "Recommendation",
	reflect.TypeFor[alertDocument]():          "Alert",
	reflect.TypeFor[problem.Fault]():          "Fault",
	reflect.TypeFor[problem.Document]():       "Problem",
}

func wireName(wire any) string { return wireNames[reflect.TypeOf(wire)] }
