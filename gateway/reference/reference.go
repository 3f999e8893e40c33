// Package reference serves the description of the API: openapi.json, written by hand, and a page with a console,
// rendered from it. openapi.json is the only description; tests in package gateway compare it with the program and with
// the golden files, from which they write examples.json. Package gateway serves the documents. The package owns no
// table and imports no other package of the module.
package reference

import (
	"embed"
	"encoding/json"
	"errors"
	"path"
)

// OpenAPI is openapi.json, from which [Complete] makes the OpenAPI 3.1 document.
//
//go:embed openapi.json
var OpenAPI []byte

// Examples is examples.json, an object of [Example] values by name. The tests of package gateway write it.
//
//go:embed examples.json
var Examples []byte

// files are the template of the reference page, the report page, and the files that they load.
//
//go:embed page report shared
var files embed.FS

// served are the folders of files and the paths below which they are served.
var served = []struct{ folder, path string }{{"page", "/docs/"}, {"shared", "/docs/"}, {"report", "/report/"}}

// llms is an index for assistants, in the form of https://llmstxt.org.
//
//go:embed llms.txt
var llms []byte

// policy allows the page to load files from and send requests to its own origin only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A Document is a file of the reference.
type Document struct {
	Path      string // below the base path of the API
	MediaType string
	Body      []byte
	Policy    string // Content-Security-Policy; empty: none
	Link      string // header; empty: none
}

// links name the other forms of the page.
const links = `</external-api-v1/docs.md>; rel="alternate"; type="text/markdown", ` +
	`</external-api-v1/llms.txt>; rel="describedby"`

const html = "text/html; charset=utf-8"

// mediaTypes are the types of the files that the page loads.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Documents returns the OpenAPI document, the pages and the files that they load. It panics if an embedded file is
// invalid, which a test excludes.
func Documents() []Document {
	document, err := Complete(OpenAPI, Examples)
	if err != nil {
		panic(err)
	}
	// The pages are rendered from the sources, not from the document that Complete has extended.
	d, examples := sources()
	documents := []Document{
		{Path: "/openapi.json", MediaType: "application/json", Body: document},
		{Path: "/docs", MediaType: html, Body: renderPage(d, examples), Policy: policy, Link: links},
		{Path: "/docs.md", MediaType: "text/markdown; charset=utf-8", Body: renderMarkdown(d, examples)},
		{Path: "/llms.txt", MediaType: "text/plain; charset=utf-8", Body: llms},
	}
	for _, s := range served {
		entries, err := files.ReadDir(s.folder)
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			body, err := files.ReadFile(s.folder + "/" + e.Name())
			if err != nil {
				panic(err)
			}
			// The report is the only page that is not rendered from a template.
			if e.Name() == "report.html" {
				documents = append(documents, Document{Path: "/report", MediaType: html, Body: body, Policy: policy})
			}
			if mediaType, loaded := mediaTypes[path.Ext(e.Name())]; loaded {
				documents = append(documents, Document{Path: s.path + e.Name(), MediaType: mediaType, Body: body})
			}
		}
	}
	return documents
}

// sources returns the contents of openapi.json and examples.json.
func sources() (*description, ordered[Example]) {
	var d description
	var shown ordered[Example]
	if err := errors.Join(json.Unmarshal(OpenAPI, &d), json.Unmarshal(Examples, &shown)); err != nil {
		panic(err)
	}
	return &d, shown
}
