package reference

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"
)

// renderPage returns the reference as HTML.
func renderPage(d *description, examples ordered[Example]) []byte {
	p := newPage(d, examples)
	t := template.Must(template.New("page.html").Funcs(template.FuncMap{
		"text": inline, "json": colorJSON, "value": d.value, "statusText": http.StatusText,
	}).ParseFS(files, "page/*.html"))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic(err) // the template and the document are embedded, and a test renders them
	}
	return b.Bytes()
}

// A page is what the template shows.
type page struct {
	Base, Title, Summary, Version string

	Introduction section
	Guides       []section // tags without routes
	Groups       []section // tags with routes
	Errors       section
	Headers      ordered[header]
	Codes        []codeView // all problem codes
	Problem      objectView // the members of a problem document
}

// A section is a tag, or the introduction.
type section struct {
	ID, Name string
	Source   string // Markdown
	prose
	Headers bool // whether the headers of responses follow
	Routes  []route
}

// A route is an operation as the page shows it. About and Needs are Markdown.
type route struct {
	ID, Method, Path, Title, About, Needs string

	Parameters []parameter
	Body       *objectView
	Response   []objectView // the body of a success and the objects in it
	Codes      []problemCode
	Keyed      bool     // whether it takes an Idempotency-Key
	MediaTypes []string // of a success, if there are several; the first is the default
	Example    Example
	Samples    []sample
}

// An objectView is a schema of the type object.
type objectView struct {
	Name    string
	Members []memberView
}

type memberView struct {
	Name     string
	Schema   schema
	Optional bool
}

// A codeView is a problem code with an example of its problem document.
type codeView struct {
	problemCode
	Title   string // of its problem document, from the example
	Example json.RawMessage
}

// newPage returns the view that both templates show. A tag becomes a group if operations have it, else a guide; the tag
// of problems becomes the section of errors.
func newPage(d *description, examples ordered[Example]) *page {
	p := &page{Base: d.Servers[0].URL, Title: d.Info.Title, Summary: d.Info.Summary, Version: d.Info.Version, Headers: d.Components.Headers}
	p.Introduction = section{ID: "introduction", Name: d.Info.Title, Source: d.Info.Description, prose: renderProse(d.Info.Description)}
	for _, t := range d.Tags {
		s := section{ID: strings.ReplaceAll(strings.ToLower(t.Name), " ", "-"), Name: t.Name, Source: t.Description, prose: renderProse(t.Description), Headers: t.Shows == "headers"}
		for _, path := range d.Paths {
			for _, o := range path.Value.operations() {
				// The operations at the base path itself carry the routes; they are described in text.
				if slices.Contains(o.Value.Tags, t.Name) && path.Name != p.Base {
					s.Routes = append(s.Routes, d.route(o.Name, path.Name, o.Value, examples.get(o.Value.OperationID)))
				}
			}
		}
		switch {
		case t.Shows == "problems":
			p.Errors = s
		case s.Routes != nil:
			p.Groups = append(p.Groups, s)
		default:
			p.Guides = append(p.Guides, s)
		}
	}
	for _, c := range d.codes() {
		v := codeView{problemCode: c}
		// A code without an example, which the tests exclude, has no title.
		if e := examples.get(c.Code); e != nil {
			v.Example = e.Response
			var document struct{ Title string }
			if err := json.Unmarshal(e.Response, &document); err != nil {
				panic(err)
			}
			v.Title = document.Title
		}
		p.Codes = append(p.Codes, v)
	}
	p.Problem = object("Problem", d.Components.Schemas.get("Problem"))
	return p
}

// route describes an operation. Its example is nil until the tests have written it.
func (d *description) route(method, path string, o *operation, e *Example) route {
	r := route{ID: o.OperationID, Method: method, Path: path, Title: o.Summary, About: o.Description}
	if e != nil {
		r.Example = *e
		r.Samples = samplesOf(e)
	}
	// Only a route without scopes needs no entitlement.
	if r.Needs = "a valid key"; o.Scopes != nil {
		r.Needs = "the scope `" + strings.Join(o.Scopes, "` or `") + "` and a plan with `api_access`"
	}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = *resolve(d.Components.Parameters, p.Ref)
		}
		r.Parameters = append(r.Parameters, p)
		r.Keyed = r.Keyed || p.Name == "Idempotency-Key"
	}
	if o.RequestBody != nil {
		// Bodies have one media type only. The first object is the body itself; the page does not show the objects in
		// it.
		if objects := d.objects(nil, &o.RequestBody.Content[0].Value.Schema); objects != nil {
			r.Body = &objects[0]
		}
	}
	for _, m := range o.Responses {
		r.Codes = append(r.Codes, d.codesOf(&m)...)
		// A success, which may have no content (204).
		if m.Name[0] == '2' && len(m.Value.Content) > 0 {
			r.Response = d.objects(r.Response, &m.Value.Content[0].Value.Schema)
			if len(m.Value.Content) > 1 {
				for _, c := range m.Value.Content {
					r.MediaTypes = append(r.MediaTypes, c.Name)
				}
			}
		}
	}
	return r
}

// objects appends the object schemas that a schema refers to, each once, each before those it contains.
func (d *description) objects(all []objectView, s *schema) []objectView {
	if s.Ref != "" {
		name := nameOf(s.Ref)
		// Schemas may refer to each other, so each is described once.
		if slices.ContainsFunc(all, func(o objectView) bool { return o.Name == name }) {
			return all
		}
		s = resolve(d.Components.Schemas, s.Ref)
		if s.Properties != nil {
			all = append(all, object(name, s))
		}
	}
	for i := range s.Properties {
		all = d.objects(all, &s.Properties[i].Value)
	}
	for i := range s.AnyOf {
		all = d.objects(all, &s.AnyOf[i])
	}
	if s.Items != nil {
		all = d.objects(all, s.Items)
	}
	return all
}

// object returns the view of a schema that has properties.
func object(name string, s *schema) objectView {
	o := objectView{Name: name}
	for _, m := range s.Properties {
		o.Members = append(o.Members, memberView{m.Name, m.Value, !slices.Contains(s.Required, m.Name)})
	}
	return o
}
