package reference

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// files are the page's template and what it loads. None of them comes from elsewhere.
//
//go:embed page
var files embed.FS

// policy lets the page load its own files and ask its own host, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page writes the reference for people.
func page(a *API) []byte {
	p := &pageView{API: a, examples: LoadExamples()}
	t := template.Must(template.New("page.html").Funcs(template.FuncMap{
		"text": textWithCode, "json": colored, "kind": kindOf, "statusText": http.StatusText, "thousands": thousands, "sentence": sentence,
	}).ParseFS(files, "page/*.html"))
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		panic(err) // the template is built in, and a test has made the page
	}
	return b.Bytes()
}

// pageView is what the template sees.
type pageView struct {
	*API
	examples Examples
}

// A tagView is a part of the page, with its routes.
type tagView struct {
	Name, About string
	ID          string
	Routes      []routeView
}

type routeView struct {
	Route
	ID, Title, About string
	Needs            string
	Samples          []sample
	Example          Example
	Problems         []Problem
	BodyMembers      []Member
	AnswerSchemas    []Named
	ParameterViews   []parameterView
}

type parameterView struct {
	Parameter
	About string
}

// Tags are the parts that have routes of their own.
func (p *pageView) Tags() (views []tagView) {
	for _, t := range tags {
		v := tagView{Name: t.Name, About: t.About, ID: strings.ToLower(t.Name)}
		for i := range p.Routes {
			if r := &p.Routes[i]; routesWords[r.Name()].Tag == t.Name {
				v.Routes = append(v.Routes, p.route(r))
			}
		}
		if v.Routes != nil {
			views = append(views, v)
		}
	}
	return views
}

func (p *pageView) route(r *Route) routeView {
	words := routesWords[r.Name()]
	v := routeView{Route: *r, ID: words.ID, Title: words.Title, About: words.About, Example: p.examples.Routes[r.Name()].Success}
	v.Samples = samplesOf(&v.Example)
	v.Needs = "any valid key"
	if len(r.Scopes) > 0 {
		v.Needs = "`" + strings.Join(r.Scopes, "` or `") + "`, and a plan with `api_access`"
	}
	for _, code := range r.Codes {
		v.Problems = append(v.Problems, *p.problem(code))
	}
	for _, q := range r.Parameters {
		v.ParameterViews = append(v.ParameterViews, parameterView{q, aboutParameter(r.Name(), &q)})
	}
	if r.Body != "" {
		v.BodyMembers = p.schema(r.Body).Members
	}
	p.collect(&v.AnswerSchemas, r.Answer)
	return v
}

// collect adds a schema and those that it refers to.
func (p *pageView) collect(all *[]Named, name string) {
	if slices.ContainsFunc(*all, func(n Named) bool { return n.Name == name }) {
		return
	}
	s := p.schema(name)
	*all = append(*all, Named{name, *s})
	for _, m := range s.Members {
		if m.Schema.Ref != "" {
			p.collect(all, m.Schema.Ref)
		}
		if m.Schema.Items != nil && m.Schema.Items.Ref != "" {
			p.collect(all, m.Schema.Items.Ref)
		}
	}
}

// A codeView is a problem with what to do about it and what it looks like.
type codeView struct {
	Problem
	About    string
	Response []byte
}

// Codes are all problems, by status.
func (p *pageView) Codes() (views []codeView) {
	for _, problem := range p.Problems {
		about := codeWords[problem.Code]
		if about == "" {
			about = "The run check `" + problem.Check + "` refuses the run."
		}
		views = append(views, codeView{problem, about, p.examples.Problems[problem.Code].Response})
	}
	return views
}

// ProblemMembers are the members of a problem document.
func (p *pageView) ProblemMembers() []Member { return p.schema("Problem").Members }

// Headers are those of answers.
func (p *pageView) Headers() []headerWord { return headerWords }

// First is the example that the introduction shows.
func (p *pageView) First() routeView { return p.route(&p.Routes[0]) }

// LimitHeaders are the headers of the introduction's example that tell of the window.
func (p *pageView) LimitHeaders() string {
	var lines []string
	first := p.First()
	for _, h := range first.Example.Headers {
		if strings.Contains(h, "RateLimit") {
			lines = append(lines, h)
		}
	}
	return strings.Join(lines, "\n")
}

// kindOf says in words what a value must be.
func kindOf(s Schema) string {
	if s.Ref != "" {
		return s.Ref
	}
	kind := s.Type
	if s.Type == "array" && s.Items != nil {
		kind = "array of " + kindOf(*s.Items)
	}
	switch {
	case s.Const != "":
		kind += " " + s.Const
	case s.Format == "date-time":
		kind = "time (RFC 3339)"
	}
	if s.Null {
		kind += " or null"
	}
	unit := map[string]string{"array": " items", "string": " characters"}[s.Type]
	switch {
	case s.Min != nil && s.Max != nil:
		kind += ", " + thousands(*s.Min) + " to " + thousands(*s.Max) + unit
	case s.Min != nil:
		kind += ", from " + thousands(*s.Min) + unit
	}
	if s.Unique {
		kind += ", each once"
	}
	return kind
}

// sentence makes one of what a value is.
func sentence(is string) string { return strings.ToUpper(is[:1]) + is[1:] + "." }

// thousands writes a number with its thousands set apart.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
