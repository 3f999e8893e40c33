package reference

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// openAPI writes the API down as OpenAPI 3.1: each route at its plain address, and the gateway's two forms.
func openAPI(a *API) []byte {
	d := &openapi{API: a, examples: LoadExamples(), used: make(map[string]bool)}
	var paths object
	paths.add(a.Base, d.gatewayForms())
	for i := range a.Routes {
		path := a.Routes[i].Path
		if slices.ContainsFunc(a.Routes[:i], func(r Route) bool { return r.Path == path }) {
			continue
		}
		var item object
		for j := range a.Routes {
			if r := &a.Routes[j]; r.Path == path {
				item.add(strings.ToLower(r.Method), d.operation(r))
			}
		}
		paths.add(a.Base+path, item)
	}
	var root object
	root.add("openapi", "3.1.0")
	root.add("info", d.info())
	root.add("servers", []object{{{"url", "/"}, {"description", "The host that this document comes from."}}})
	var described []object
	for _, t := range tags {
		described = append(described, object{{"name", t.Name}, {"description", t.About}})
	}
	root.add("security", []object{{{"apiKey", []string{}}}})
	root.add("tags", described)
	root.add("paths", paths)
	root.add("components", d.components())

	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic(err) // it is made of what can be encoded
	}
	return b.Bytes()
}

type openapi struct {
	*API
	examples Examples
	used     map[string]bool // the shared headers and examples that something refers to
}

// use refers to a shared component.
func (d *openapi) use(kind, name string) object {
	d.used[kind+"/"+name] = true
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}

func (d *openapi) info() object {
	return object{
		{"title", "Developer API of the measurement service"},
		{"version", d.Version},
		{"summary", "Read catalogs, runs, recommendations and alerts; create measurement runs."},
		{"description", "Everything is served at one address, `" + d.Base + "`: reads as `GET " + d.Base + "?path=/v1/…` with the parameters beside `path`, " +
			"writes as `POST " + d.Base + "` with the envelope `{\"path\",\"method\",\"body\"}`. The same routes answer at plain addresses too, `" + d.Base +
			"/v1/…`, with bare bodies. GET answers HEAD as well. An unknown or repeated query parameter is refused on every route.\n\n" +
			"Members, parameters and problem codes are only ever added within `/v1`; a breaking change is `/v2`. A client ignores members that it does not know. " +
			"A deprecation is announced by the headers `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) at least 12 months ahead.\n\n" +
			"The reference for people, with a console, is at `" + d.Base + "/docs`."},
		{"contact", object{{"name", "The operator of this deployment"}}},
		{"license", object{{"name", "The operator's terms"}, {"identifier", "LicenseRef-operator-terms"}}},
	}
}

func (d *openapi) operation(r *Route) object {
	words, ok := routesWords[r.Name()]
	if !ok {
		panic("nothing is said of the route " + r.Name())
	}
	var o object
	o.add("operationId", words.ID)
	o.add("tags", []string{words.Tag})
	o.add("summary", words.Title)
	o.add("description", words.About+d.needs(r))
	if len(r.Scopes) > 0 {
		o.add("x-scopes", r.Scopes) // any of them; OpenAPI lists scopes with OAuth 2 and OpenID Connect only
	}
	var parameters []object
	for _, p := range r.Parameters {
		parameters = append(parameters, d.parameter(r, &p))
	}
	if parameters != nil {
		o.add("parameters", parameters)
	}
	success := d.examples.Routes[r.Name()].Success
	if r.Body != "" {
		o.add("requestBody", requestBody(Schema{Ref: r.Body}, success.Body))
	}
	var responses object
	responses.add(strconv.Itoa(r.Status), d.success(r, success.Response))
	if r.Tagged {
		responses.add("304", object{
			{"description", "The representation that the client has is still the one."},
			{"headers", d.headers(append(slices.Clone(always), "ETag"), nil)}})
	}
	d.addProblems(&responses, r.Name(), r.Codes, (*Example).AtPlainAddress)
	o.add("responses", responses)
	return o
}

// needs says what a route asks of the key.
func (d *openapi) needs(r *Route) string {
	var s string
	if len(r.Scopes) > 0 {
		s = "\n\nNeeds the scope `" + strings.Join(r.Scopes, "` or `") + "`"
		if r.Entitled || r.Body != "" {
			s += ", and a plan with `api_access`"
		}
		s += "."
	}
	return s
}

func (d *openapi) parameter(r *Route, p *Parameter) object {
	o := object{{"name", p.Name}, {"in", p.In}}
	if p.Required {
		o.add("required", true)
	}
	o.add("description", aboutParameter(r.Name(), p)+" It is "+p.Is+".")
	if p.Schema.Type == "array" {
		o.add("style", "form")
		o.add("explode", false)
	}
	o.add("schema", p.Schema)
	return o
}

func aboutParameter(route string, p *Parameter) string {
	if words, ok := parameterWords[route+" "+p.Name]; ok {
		return words
	}
	if words, ok := parameterWords[p.Name]; ok {
		return words
	}
	panic("nothing is said of the parameter " + p.Name + " of " + route)
}

// always are the headers of each answer to a key that was admitted.
var always = []string{"X-Request-Id", "Cache-Control", "RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

func (d *openapi) success(r *Route, example json.RawMessage) object {
	required, optional := slices.Clone(always), []string(nil)
	about := "The answer."
	switch {
	case r.Body != "":
		about = "The run is queued; or it was before, and this is its first answer again."
		required, optional = append(required, "Location"), append(optional, "Idempotent-Replayed")
	case r.List:
		about = "A page of the list."
		optional = append(optional, "Link")
	}
	if r.Tagged {
		required = append(required, "ETag")
	}
	return object{
		{"description", about},
		{"headers", d.headers(required, optional)},
		{"content", object{{"application/json", object{{"schema", Schema{Ref: r.Answer}}, {"example", example}}}}},
	}
}

// addProblems adds a response for each status of the codes, with an example of each code. What a client may rely on is the
// code, so each response names its codes.
func (d *openapi) addProblems(responses *object, route string, codes []string, response func(*Example) json.RawMessage) {
	statuses := make(map[int][]string)
	for _, code := range codes {
		p := d.problem(code)
		statuses[p.Status] = append(statuses[p.Status], code)
	}
	for status := 400; status < 600; status++ {
		codes := statuses[status]
		if codes == nil {
			continue
		}
		var examples object
		var about []string
		for _, code := range codes {
			e := d.examples.problemOf(route, code)
			if own := d.examples.Routes[route].Problems[code]; own.File != "" {
				examples.add(code, object{{"summary", d.problem(code).Title}, {"value", response(&e)}})
			} else {
				examples.add(code, d.use("examples", code))
			}
			about = append(about, "`"+code+"`: "+codeWords[code])
		}
		required, optional := problemHeaders(status)
		responses.add(strconv.Itoa(status), object{
			{"description", http.StatusText(status) + ". " + strings.Join(about, "\n")},
			{"headers", d.headers(required, optional)},
			{"content", object{{"application/problem+json", object{{"schema", Schema{Ref: "Problem"}}, {"examples", examples}}}}},
		})
	}
}

// problemHeaders are the headers of problems of a status, and those that only some have. Where a request was refused before
// its minute was known there is nothing to tell of it.
func problemHeaders(status int) (required, optional []string) {
	switch status {
	case 401:
		return []string{"X-Request-Id", "Cache-Control", "WWW-Authenticate"}, nil
	case 403:
		return always, []string{"WWW-Authenticate"}
	case 405:
		return append(slices.Clone(always), "Allow"), nil
	case 409:
		return always, []string{"Retry-After"}
	case 429:
		return append(slices.Clone(always), "Retry-After"), nil
	case 500:
		return always[:2], always[2:]
	case 503:
		return append(slices.Clone(always[:2]), "Retry-After"), always[2:]
	}
	return always, nil
}

// headers refers to the shared headers, of which there is one that is always sent and one that is not.
func (d *openapi) headers(required, optional []string) object {
	var o object
	for _, h := range headerWords {
		switch {
		case slices.Contains(required, h.Name):
			o.add(h.Name, d.use("headers", h.Name))
		case slices.Contains(optional, h.Name):
			o.add(h.Name, d.use("headers", "Optional-"+h.Name))
		}
	}
	return o
}

func requestBody(s Schema, example json.RawMessage) object {
	return object{{"required", true}, {"content", object{{"application/json", object{{"schema", s}, {"example", example}}}}}}
}

func (d *openapi) components() object {
	var schemas, shared, examples object
	for _, s := range d.Schemas {
		schemas.add(s.Name, s.Schema)
	}
	schemas.add("Envelope", d.envelope())
	for _, h := range headerWords {
		form := object{{"description", h.About}, {"schema", Schema{Type: h.Type, Pattern: h.Pattern}}}
		if d.used["headers/"+h.Name] {
			shared.add(h.Name, append(object{{"required", true}}, form...))
		}
		if d.used["headers/Optional-"+h.Name] {
			shared.add("Optional-"+h.Name, form)
		}
	}
	for _, p := range d.Problems {
		if d.used["examples/"+p.Code] {
			examples.add(p.Code, object{{"summary", p.Title}, {"value", d.examples.Problems[p.Code].Response}})
		}
	}
	return object{
		{"securitySchemes", object{{"apiKey", object{
			{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "aiv_live_…"},
			{"description", "The key, as `Authorization: Bearer aiv_live_…`. An operation lists in `x-scopes` the scopes of which it needs one; there are `" +
				strings.Join(d.Scopes, "`, `") + "`."},
		}}}},
		{"schemas", schemas},
		{"headers", shared},
		{"examples", examples},
	}
}
