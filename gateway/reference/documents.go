package reference

import "path"

// A Document is a file of the reference.
type Document struct {
	Path      string // below the API's base
	MediaType string
	Body      []byte
	Policy    string // its Content-Security-Policy, of a page
}

// Documents makes the documents of an API: the OpenAPI document, the page, and the files that the page loads.
func Documents(a *API) []Document {
	documents := []Document{
		{"/openapi.json", "application/json", openAPI(a), ""},
		{"/docs", "text/html; charset=utf-8", page(a), policy},
	}
	entries, err := files.ReadDir("page")
	if err != nil {
		panic(err) // it is built in
	}
	for _, e := range entries {
		mediaType, loaded := mediaTypes[path.Ext(e.Name())]
		if !loaded {
			continue // the template
		}
		body, err := files.ReadFile("page/" + e.Name())
		if err != nil {
			panic(err)
		}
		documents = append(documents, Document{"/docs/" + e.Name(), mediaType, body, ""})
	}
	return documents
}

// mediaTypes are those of the files that the page loads.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}
