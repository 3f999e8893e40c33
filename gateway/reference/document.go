package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Example is an exchange of a golden file. Its name is the id of an operation, of which it shows a success, or the
// code of a problem.
type Example struct {
	File     string          `json:"file"`
	Method   string          `json:"method,omitempty"`
	Address  string          `json:"address,omitempty"` // path and parameters of the route
	Key      string          `json:"idempotency_key,omitempty"`
	Status   int             `json:"status"`            // of the response
	Headers  []string        `json:"headers,omitempty"` // of the response, as lines
	Request  json.RawMessage `json:"request,omitempty"` // the body of the route, also where it was sent in an envelope
	Response json.RawMessage `json:"response,omitempty"`
}

// Complete returns the document that is served: openapi.json with the values of ProblemCode from its x-problems, and
// with the examples of examples.json. Each operation shows a success, each problem response the problems that it can
// have. Problems that only the tools for assistants can have get no example there: linters reject components
// without a reference.
func Complete(openAPI, examples []byte) ([]byte, error) {
	var d description
	var shown ordered[Example]
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	if err := json.Unmarshal(examples, &shown); err != nil {
		return nil, fmt.Errorf("examples.json: %w", err)
	}
	// added has what is appended to objects, by their paths in the document. insert fails for a path that does not
	// exist.
	added := map[string][]addition{"/components/schemas/ProblemCode": enumeration(d.codes())}
	referred := make(map[string]bool)
	for _, path := range d.Paths {
		for _, o := range path.Value.operations() {
			at := "/paths/" + path.Name + "/" + strings.ToLower(o.Name)
			// The example of a success has the body of the request and of the response.
			if e := shown.get(o.Value.OperationID); e != nil {
				referred[o.Value.OperationID] = true
				if e.Request != nil {
					at := at + "/requestBody/content/application/json"
					added[at] = append(added[at], references("ok", o.Value.OperationID+"_request"))
				}
				if e.Response != nil {
					at := fmt.Sprintf("%s/responses/%d/content/application/json", at, e.Status)
					added[at] = append(added[at], references("ok", o.Value.OperationID))
				}
			}
			for _, r := range o.Value.Responses {
				at := at + "/responses/" + r.Name
				// A response that operations share gets its examples once, where it is defined.
				if r.Value.Ref != "" {
					at = "/components/responses/" + nameOf(r.Value.Ref)
				}
				at += "/content/application/problem+json"
				var names []string
				for _, c := range d.codesOf(&r) {
					if shown.get(c.Code) != nil {
						// references takes pairs of names: of the example, and of its component.
						names = append(names, c.Code, c.Code)
						referred[c.Code] = true
					}
				}
				if names != nil {
					added[at] = []addition{references(names...)}
				}
			}
		}
	}
	// This is last because it needs all names in referred.
	added["/components"] = []addition{{"examples", exampleObjects(shown, referred)}}
	return insert(openAPI, added)
}

// enumeration describes the codes by the keyword enum, which generators of clients read, and by x-enumDescriptions,
// which viewers of documents show.
func enumeration(codes []problemCode) []addition {
	var names []string
	descriptions := make(map[string]string)
	for _, c := range codes {
		names = append(names, c.Code)
		descriptions[c.Code] = c.Description
	}
	return []addition{{"enum", encode(names)}, {"x-enumDescriptions", encode(descriptions)}}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// exampleObjects returns the examples that are referred to as Example Objects of OpenAPI.
func exampleObjects(shown ordered[Example], referred map[string]bool) string {
	var objects []string
	object := func(name string, value json.RawMessage) {
		if value != nil {
			var b bytes.Buffer
			json.Indent(&b, value, "      ", "  ") // it is valid: it was read from JSON
			objects = append(objects, fmt.Sprintf("\n      %q: {\"value\": %s}", name, b.String()))
		}
	}
	for _, e := range shown {
		// A component that nothing refers to would be a warning of linters.
		if referred[e.Name] {
			object(e.Name, e.Value.Response)
			object(e.Name+"_request", e.Value.Request)
		}
	}
	return "{" + strings.Join(objects, ",") + "\n    }"
}

// references returns the member examples of a Media Type Object, for pairs of a name and the name of a component.
func references(pairs ...string) addition {
	var members []string
	for pair := range slices.Chunk(pairs, 2) {
		members = append(members, fmt.Sprintf(`%q: {"$ref": "#/components/examples/%s"}`, pair[0], pair[1]))
	}
	return addition{"examples", "{" + strings.Join(members, ", ") + "}"}
}

// An addition is a member to append to an object.
type addition struct{ name, value string }

// insert appends members to objects of a JSON document, which it finds by their paths. It changes nothing else, not
// even white space, so that the document stays as readable as its source.
func insert(document []byte, added map[string][]addition) ([]byte, error) {
	var b bytes.Buffer
	copied := 0
	d := json.NewDecoder(bytes.NewReader(document))
	var walk func(path string) error
	walk = func(path string) error {
		opened, err := d.Token()
		if err != nil || opened != json.Delim('{') && opened != json.Delim('[') {
			return err
		}
		for d.More() {
			// The items of an array have the path of the array: no addition is inside one.
			inner := path
			if opened == json.Delim('{') {
				name, err := d.Token()
				if err != nil {
					return err
				}
				inner += "/" + name.(string)
			}
			if err := walk(inner); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
		if opened == json.Delim('{') && added[path] != nil {
			// The input offset is after the closing brace. What precedes the brace is copied, without the space before
			// it. None of the objects is empty, so each new member follows a comma.
			head := bytes.TrimRight(document[copied:d.InputOffset()-1], " \n")
			b.Write(head)
			copied += len(head)
			for _, a := range added[path] {
				fmt.Fprintf(&b, ", %q: %s", a.name, a.value)
			}
			delete(added, path)
		}
		return nil
	}
	if err := walk(""); err != nil {
		return nil, err
	}
	if len(added) > 0 {
		return nil, errors.New("openapi.json has no " + strings.Join(slices.Sorted(maps.Keys(added)), ", "))
	}
	return append(b.Bytes(), document[copied:]...), nil
}
