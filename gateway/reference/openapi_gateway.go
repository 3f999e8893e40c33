package reference

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// gatewayCodes are the problems that only the gateway's two forms have.
var gatewayCodes = []string{"invalid_envelope", "route_not_found", "method_not_allowed"}

// gatewayForms are the two forms of the one address.
func (d *openapi) gatewayForms() object {
	return object{{"get", d.gatewayGet()}, {"post", d.gatewayPost()}}
}

func (d *openapi) gatewayGet() object {
	var answers []Schema
	var paths []string
	var examples, given object
	var parameters []object
	codes := []string{"route_not_found"}
	seen := make(map[string]bool)
	tagged := false
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Method != "GET" {
			continue
		}
		words := routesWords[r.Name()]
		success := d.examples.Routes[r.Name()].Success
		paths = append(paths, "`"+r.Path+"`")
		answers = append(answers, Schema{Ref: r.Answer})
		examples.add(words.ID, object{{"summary", words.Title}, {"value", success.Response}})
		path, _, _ := strings.Cut(success.Address, "?")
		given.add(words.ID, object{{"summary", words.Title}, {"value", path}})
		tagged = tagged || r.Tagged
		for _, p := range r.Parameters {
			if p.In == "path" || seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			parameters = append(parameters, d.anyParameter(p.Name))
		}
		for _, c := range r.Codes {
			if !slices.Contains(codes, c) {
				codes = append(codes, c)
			}
		}
	}
	parameters = append([]object{{
		{"name", "path"}, {"in", "query"}, {"required", true},
		{"description", "The logical route: one of " + strings.Join(paths, ", ") + ". It may carry its parameters itself, percent-encoded."},
		{"schema", Schema{Type: "string", Min: new(1)}}, {"examples", given},
	}}, parameters...)
	required := slices.Clone(always)
	var responses object
	responses.add("200", object{
		{"description", "What the route answers."},
		{"headers", d.headers(required, []string{"ETag", "Link"})},
		{"content", object{{"application/json", object{{"schema", Schema{AnyOf: answers}}, {"examples", examples}}}}},
	})
	if tagged {
		responses.add("304", object{
			{"description", "The representation that the client has is still the one."},
			{"headers", d.headers(append(required, "ETag"), nil)}})
	}
	d.addProblems(&responses, "", d.ordered(codes), atGateway)
	return object{
		{"operationId", "read"}, {"tags", []string{gatewayTag}}, {"summary", "Read a route through the gateway"},
		{"description", "Answers as the route that `path` names does at its plain address. Which parameters may stand beside `path`, and what they must be, " +
			"is the route's to say; an unknown one is refused."},
		{"parameters", parameters},
		{"responses", responses},
	}
}

// anyParameter is a parameter that several routes have, of which the forms may differ: what all of them take.
func (d *openapi) anyParameter(name string) object {
	var of []string
	var forms []Schema
	in := "query"
	for i := range d.Routes {
		for _, p := range d.Routes[i].Parameters {
			if p.Name == name && d.Routes[i].Method == "GET" {
				of = append(of, "`"+d.Routes[i].Path+"`")
				in = p.In
				if !slices.ContainsFunc(forms, func(s Schema) bool { return same(s, p.Schema) }) {
					forms = append(forms, p.Schema)
				}
			}
		}
	}
	schema := Schema{Type: "string", Min: new(1)}
	if len(forms) == 1 {
		schema = forms[0]
	}
	o := object{{"name", name}, {"in", in}, {"description", "Of " + strings.Join(of, ", ") + "."}}
	if schema.Type == "array" {
		o.add("style", "form")
		o.add("explode", false)
	}
	o.add("schema", schema)
	return o
}

func same(a, b Schema) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (d *openapi) gatewayPost() object {
	var o object
	o.add("operationId", "write")
	o.add("tags", []string{gatewayTag})
	o.add("summary", "Write through the gateway")
	o.add("description", "Performs what the envelope says, as the route does at its plain address. Pointers in problems lead into the envelope. It takes no query parameters, "+
		"and never performs a read.")
	var responses object
	for i := range d.Routes {
		r := &d.Routes[i]
		if r.Body == "" {
			continue
		}
		success := d.examples.Routes[r.Name()].Success
		envelope, err := json.Marshal(object{{"path", r.Path}, {"method", r.Method}, {"body", success.Body}})
		if err != nil {
			panic(err)
		}
		var parameters []object
		for _, p := range r.Parameters {
			parameters = append(parameters, d.parameter(r, &p))
		}
		o.add("x-scopes", r.Scopes)
		o.add("parameters", parameters)
		o.add("requestBody", requestBody(Schema{Ref: "Envelope"}, envelope))
		responses.add(strconv.Itoa(r.Status), d.success(r, success.Response))
		d.addProblems(&responses, r.Name(), d.ordered(append(slices.Clone(r.Codes), gatewayCodes...)), atGateway)
	}
	o.add("responses", responses)
	return o
}

func atGateway(e *Example) json.RawMessage { return e.Response }

// envelope is what a write through the gateway sends. There is one route that is written.
func (d *openapi) envelope() Schema {
	var paths, methods []string
	var body Schema
	for _, r := range d.Routes {
		if r.Body != "" {
			paths, methods, body = append(paths, r.Path), append(methods, r.Method), Schema{Ref: r.Body}
		}
	}
	return Schema{Type: "object", Closed: true, Members: []Member{
		{Name: "path", Schema: Schema{Type: "string", Description: "The logical route.", Enum: paths}},
		{Name: "method", Schema: Schema{Type: "string", Description: "Its method.", Enum: methods}},
		{Name: "body", Schema: body},
	}}
}

// ordered sorts codes as the problems stand.
func (d *openapi) ordered(codes []string) (sorted []string) {
	for _, p := range d.Problems {
		if slices.Contains(codes, p.Code) {
			sorted = append(sorted, p.Code)
		}
	}
	return sorted
}
