package reference_test

import (
	"strings"
	"testing"

	"aiv/gateway/reference"
)

// TestNewRoute renders a document with a route that has other methods and no example yet.
func TestNewRoute(t *testing.T) {
	const before = `  "paths": {`
	const route = `
    "/v1/things/{id}": {
      "patch": {
        "operationId": "changeThing", "tags": ["Runs"], "summary": "Change a thing", "description": "Changes a **thing**.",
        "x-scopes": ["runs:write"],
        "parameters": [{"name": "id", "in": "path", "required": true, "description": "The id.", "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewRun"}}}},
        "responses": {"200": {"description": "The thing.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RunPage"}}}}}
      },
      "delete": {
        "operationId": "deleteThing", "tags": ["Runs"], "summary": "Delete a thing", "description": "Deletes it.",
        "responses": {"204": {"description": "Deleted."}, "404": {"$ref": "#/components/responses/RunNotFound"}}
      }
    },`
	page, err := reference.RenderPage([]byte(strings.Replace(string(reference.OpenAPI), before, before+route, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<article class="pair" id="changeThing"`, `<span class="method PATCH">PATCH</span> <code>/v1/things/{id}</code>`,
		`Changes a <strong>thing</strong>.`, `<summary>RunPage</summary>`, `<summary>RunJobs</summary>`, `<code>model_ids</code>`,
		`<article class="pair" id="deleteThing"`, `<p>No body.</p>`, `<option value="DELETE /v1/things/{id}" data-method="DELETE" data-path="/v1/things/{id}"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
}
