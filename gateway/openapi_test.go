package gateway

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"aiv/gateway/reference"
)

// TestOpenAPIAndGoldenFiles validates each exchange of the golden files: the document allows the body of a request that
// the gateway accepted, describes each response with its headers and body, and has no member that no exchange has.
// TestOpenAPIRoutes, TestOpenAPIBodies and TestOpenAPIValues compare what requests may contain with the program.
func TestOpenAPIAndGoldenFiles(t *testing.T) {
	d := openAPI(t)
	for _, g := range goldenExchanges(t) {
		where := g.file + ": " + g.request.Method + " " + g.request.RequestURI
		if len(g.answers) == 0 {
			t.Errorf("%s has no response; run go test ./gateway -run Golden -update", where)
			continue
		}
		found := d.operationsOf(&g)
		hasRoute := len(found) > 0 && found[len(found)-1].name != ""
		for _, a := range g.answers {
			if len(found) == 0 {
				d.checkOutside(t, where, &g, a)
			}
			for _, o := range found {
				for _, f := range o.responseFaults(a, hasRoute) {
					t.Errorf("%s returns %d, which differs from the operation %s: %s", where, a.status, o.id(), f)
				}
			}
		}
		if status := g.answers[0].status; status < 400 || status == 409 || status == 422 {
			for _, o := range found {
				for _, f := range o.bodyFaults() {
					t.Errorf("%s was accepted (%d), but %s does not allow it: %s", where, status, o.id(), f)
				}
			}
		}
	}
	for name, schema := range d.at("#/components/schemas").(map[string]any) {
		members, _ := schema.(map[string]any)["properties"].(map[string]any)
		for member, m := range members {
			if m.(map[string]any)[shown] == nil {
				t.Errorf("no golden file shows %s/%s", name, member)
			}
		}
	}
}

// checkOutside validates the response of an address or method that the document does not have.
func (d schemaDocument) checkOutside(t *testing.T, where string, g *filledExchange, a answer) {
	t.Helper()
	path := strings.TrimPrefix(g.request.URL.Path, Base)
	isReference := path == "/openapi.json" || path == "/llms.txt" ||
		strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/report")
	switch isWorkers := strings.HasPrefix(path, "/worker/"); {
	case isReference, isWorkers && a.status < 300:
	case path == "/mcp":
		d.checkMessage(t, where, a)
	case isWorkers, slices.Contains([]int{401, 404, 405, 429}, a.status):
		d.checkProblem(t, where, a)
	default:
		t.Errorf("%s returns %d, but the document does not have the address", where, a.status)
	}
}

// messageSchemas are the schemas of responses of package mcp. They are embedded for test binaries that run without the
// source.
//
//go:embed mcp/testdata/messages.json
var messageSchemas []byte

// checkMessage validates the response to a message of an assistant by the schemas of package mcp.
func (d schemaDocument) checkMessage(t *testing.T, where string, a answer) {
	t.Helper()
	if a.status == http.StatusAccepted && len(a.body) == 0 {
		return
	}
	v, err := decodeJSON(a.body)
	must(t, err)
	if _, isMessage := v.(map[string]any)["jsonrpc"]; !isMessage {
		d.checkProblem(t, where, a)
		return
	}
	schemas, err := decodeJSON(messageSchemas)
	must(t, err)
	messages := schemaDocument(schemas.(map[string]any))
	for _, f := range messages.faults(messages.at("#/Message"), v, "#") {
		t.Errorf("%s: %s: %.300s", where, f, a.body)
	}
}

func (d schemaDocument) checkProblem(t *testing.T, where string, a answer) {
	t.Helper()
	v, err := decodeJSON(a.body)
	must(t, err)
	for _, f := range d.faults(d.at("#/components/schemas/Problem"), v, "#") {
		t.Errorf("%s: %s", where, f)
	}
}

func decodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

const (
	openAPIFile  = "reference/openapi.json"
	examplesFile = "reference/examples.json"
)

// openAPI returns the document that is made from the files of the source.
func openAPI(t *testing.T) schemaDocument {
	t.Helper()
	v, err := decodeJSON(makeDocument(t))
	must(t, err)
	return v.(map[string]any)
}

func makeDocument(t *testing.T) []byte {
	t.Helper()
	document, err := reference.Complete(readReference(t, openAPIFile, reference.OpenAPI), readReference(t, examplesFile, reference.Examples))
	must(t, err)
	return document
}

// readReference returns a file of the source, or what the test binary contains where there is no source.
func readReference(t *testing.T, file string, embedded []byte) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return embedded
	}
	must(t, err)
	return text
}

// TestOpenAPIIsServed checks that the document is served as it is made.
func TestOpenAPIIsServed(t *testing.T) {
	if *update {
		return // the embedded examples are older than the file
	}
	g := bare(Config{})
	if w := ask(g, "", "GET", "/openapi.json", ""); !bytes.Equal(w.Body.Bytes(), makeDocument(t)) {
		t.Errorf("GET /openapi.json does not return the document made from %s and %s", openAPIFile, examplesFile)
	}
}
