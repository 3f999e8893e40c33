package gateway

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
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

// messageSchemas are the schemas of responses of package mcp. They are embedded for test binaries that run without the
// source.
//
//go:embed mcp/testdata/messages.json
var messageSchemas []byte

// checkOutside validates the response of an address or method that the document does not have: a message to an assistant
// by the schemas of package mcp, others as problems.
func (d schemaDocument) checkOutside(t *testing.T, where string, g *filledExchange, a answer) {
	t.Helper()
	path := strings.TrimPrefix(g.request.URL.Path, Base)
	isWorkers, isAssistants := strings.HasPrefix(path, "/worker/"), path == "/mcp"
	switch {
	case path == "/openapi.json", path == "/llms.txt", strings.HasPrefix(path, "/docs"), strings.HasPrefix(path, "/report"),
		isWorkers && a.status < 300, isAssistants && a.status == http.StatusAccepted && len(a.body) == 0:
		return
	case !isWorkers && !isAssistants && !slices.Contains([]int{401, 404, 405, 429}, a.status):
		t.Errorf("%s returns %d, but the document does not have the address", where, a.status)
	}
	v, err := decodeJSON(a.body)
	must(t, err)
	schema := "#/components/schemas/Problem"
	if v.(map[string]any)["jsonrpc"] != nil {
		schemas, err := decodeJSON(messageSchemas)
		must(t, err)
		d, schema = schemas.(map[string]any), "#/Message"
	}
	for _, f := range d.faults(d.at(schema), v, "#") {
		t.Errorf("%s: %s: %.300s", where, f, a.body)
	}
}

func decodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// openAPI returns the document that is served.
func openAPI(t *testing.T) schemaDocument {
	t.Helper()
	document, err := reference.Complete(reference.OpenAPI, reference.Examples)
	must(t, err)
	v, err := decodeJSON(document)
	must(t, err)
	return v.(map[string]any)
}
