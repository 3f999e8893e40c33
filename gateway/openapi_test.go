package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aiv/gateway"
	"aiv/store"
)

// document asks a gateway that has nothing behind it for a document of the reference.
func documentOf(t *testing.T, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	bare().ServeHTTP(w, httptest.NewRequest("GET", gateway.Base+path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	return w.Result()
}

func bare() *gateway.Gateway {
	return gateway.New(gateway.Config{Log: slog.New(slog.DiscardHandler), NewID: store.NewID, Metrics: gateway.NewMetrics()})
}

func decodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func openAPI(t *testing.T) schemaDocument {
	t.Helper()
	var b bytes.Buffer
	b.ReadFrom(documentOf(t, "/openapi.json").Body)
	v, err := decodeJSON(b.Bytes())
	must(t, err)
	return v.(map[string]any)
}

// TestOpenAPIHoldsForTheGoldenFiles: each request that the golden files show is allowed by the document exactly where the
// gateway took it, and each answer is one that the document tells of, with its headers and its body.
func TestOpenAPIHoldsForTheGoldenFiles(t *testing.T) {
	if *update {
		return // the document of this process was made before the files
	}
	d := openAPI(t)
	for _, g := range goldenExchanges(t) {
		where := g.file + ": " + g.request.Method + " " + g.request.RequestURI
		if len(g.answers) == 0 {
			t.Errorf("%s has no response yet; go test ./gateway -run Golden -update writes it", where)
			continue
		}
		operations := d.operations(g)
		for _, a := range g.answers {
			if len(operations) == 0 {
				d.checkElsewhere(t, where, g, a)
			}
			for _, o := range operations {
				for _, f := range o.answerFaults(a) {
					t.Errorf("%s answers %d, which is not as the operation %s has it: %s", where, a.status, o.id(), f)
				}
			}
		}
		if len(operations) == 0 {
			continue
		}
		var faults []string
		for _, o := range operations {
			faults = append(faults, o.requestFaults(g)...)
		}
		switch code := g.answers[0].code(); {
		case (slices.Contains([]string{"", "insufficient_scope", "entitlement_required"}, code) || slices.Contains([]int{409, 422}, g.answers[0].status)) && len(faults) > 0:
			t.Errorf("%s was taken (%d %s), but the document does not allow it: %s", where, g.answers[0].status, code, strings.Join(faults, "; "))
		case slices.Contains([]string{"invalid_envelope", "invalid_request", "invalid_parameter", "idempotency_key_missing", "idempotency_key_invalid",
			"unsupported_media_type", "invalid_json"}, code) && len(faults) == 0 && !beyondSchemas(g.answers[0]):
			t.Errorf("%s was refused (%s), but the document allows it", where, code)
		}
	}
}

// beyondSchemas says whether a refusal is for what no schema can tell: that a cursor was made elsewhere.
func beyondSchemas(a answer) bool {
	return bytes.Contains(a.body, []byte(`"errors":[{"parameter":"cursor","detail":"is not a next_cursor`))
}

// checkElsewhere looks at an answer of an address or method that the document does not have.
func (d schemaDocument) checkElsewhere(t *testing.T, where string, g filled, a answer) {
	t.Helper()
	if path := strings.TrimPrefix(g.request.URL.Path, gateway.Base); path == "/openapi.json" || strings.HasPrefix(path, "/docs") {
		return // the reference is not in itself
	}
	if !slices.Contains([]int{401, 404, 405, 429}, a.status) {
		t.Errorf("%s answers %d, but the document does not know the address", where, a.status)
		return
	}
	v, err := decodeJSON(a.body)
	must(t, err)
	for _, f := range d.faults(d.at("#/components/schemas/Problem"), v, "#") {
		t.Errorf("%s: %s", where, f)
	}
}

// An operation is one of the document's, for one request: the gateway's GET stands for itself and for its logical route.
type operation struct {
	schemaDocument
	spec   map[string]any
	path   map[string]string // parameters in the path
	query  []string          // name=value
	asGate bool
}

func (o *operation) id() string { return o.spec["operationId"].(string) }

func (d schemaDocument) operations(g filled) (found []operation) {
	method := strings.ToLower(g.request.Method)
	if method == "head" {
		method = "get"
	}
	var query []string
	if g.request.URL.RawQuery != "" {
		query = strings.Split(g.request.URL.RawQuery, "&")
	}
	if o := d.operation(method, g.request.URL.EscapedPath(), query); o != nil {
		o.asGate = g.request.URL.Path == gateway.Base
		found = append(found, *o)
	}
	if g.request.URL.Path == gateway.Base && method == "get" {
		if path := g.request.URL.Query().Get("path"); path != "" {
			path, inner, _ := strings.Cut(path, "?")
			query = slices.DeleteFunc(slices.Clone(query), func(q string) bool { return strings.HasPrefix(q, "path=") })
			if inner != "" {
				query = append(query, strings.Split(inner, "&")...)
			}
			if o := d.operation("get", gateway.Base+path, query); o != nil {
				found = append(found, *o)
			}
		}
	}
	return found
}

func (d schemaDocument) operation(method, path string, query []string) *operation {
	for template, item := range d["paths"].(map[string]any) {
		spec, ok := item.(map[string]any)[method].(map[string]any)
		if !ok {
			continue
		}
		if template == path {
			return &operation{schemaDocument: d, spec: spec, query: query}
		}
		if before, ok := strings.CutSuffix(template, "{id}"); ok {
			if id, ok := strings.CutPrefix(path, before); ok && id != "" && !strings.Contains(id, "/") {
				return &operation{schemaDocument: d, spec: spec, query: query, path: map[string]string{"id": id}}
			}
		}
	}
	return nil
}

// requestFaults tells what of a request the operation does not allow.
func (o *operation) requestFaults(g filled) (faults []string) {
	given := make(map[string][]string) // by "query limit"
	for _, pair := range o.query {
		name, v, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(v)
		if name, nameErr := url.QueryUnescape(name); err != nil || nameErr != nil || strings.Contains(pair, ";") {
			faults = append(faults, "the query is malformed")
		} else {
			given["query "+name] = append(given["query "+name], plain)
		}
	}
	for name, v := range o.path {
		given["path "+name] = []string{v}
	}
	parameters, _ := o.spec["parameters"].([]any)
	for _, p := range parameters {
		p := o.resolve(p)
		name, key := p["name"].(string), p["in"].(string)+" "+p["name"].(string)
		if p["in"] == "header" {
			given[key] = g.request.Header.Values(name)
		}
		switch values := given[key]; {
		case len(values) > 1 && name != "If-None-Match":
			faults = append(faults, key+" is given twice")
		case len(values) == 0 && p["required"] == true:
			faults = append(faults, key+" is missing")
		case len(values) > 0:
			faults = append(faults, o.faults(p["schema"], parameterValue(p["schema"], values[0]), key)...)
		}
		delete(given, key)
	}
	for key := range given {
		if o.path == nil || !o.asGate {
			faults = append(faults, key+" is not a parameter")
		}
	}
	return append(faults, o.bodyFaults(g)...)
}

// parameterValue reads a parameter's text as its schema would have it.
func parameterValue(schema any, text string) any {
	s := schema.(map[string]any)
	switch s["type"] {
	case "integer":
		if _, err := strconv.Atoi(text); err == nil && text[0] != '+' {
			return json.Number(text)
		}
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	case "array":
		var items []any
		for item := range strings.SplitSeq(text, ",") {
			items = append(items, item)
		}
		return items
	}
	return text
}

func (o *operation) bodyFaults(g filled) []string {
	if o.spec["requestBody"] == nil {
		return nil
	}
	types := g.request.Header.Values("Content-Type")
	if len(types) != 1 || g.request.Header.Get("Content-Encoding") != "" {
		return []string{"the body has no single media type"}
	}
	mediaType, parameters, _ := mime.ParseMediaType(types[0])
	content, ok := o.spec["requestBody"].(map[string]any)["content"].(map[string]any)[mediaType].(map[string]any)
	if !ok || parameters["charset"] != "" && !strings.EqualFold(parameters["charset"], "utf-8") {
		return []string{"no body of type " + types[0] + " is taken"}
	}
	v, err := decodeJSON(g.body)
	if err != nil {
		return []string{err.Error()}
	}
	return o.faults(content["schema"], v, "body")
}

// answerFaults tells what of an answer the operation does not tell of.
func (o *operation) answerFaults(a answer) (faults []string) {
	response, ok := o.spec["responses"].(map[string]any)[strconv.Itoa(a.status)].(map[string]any)
	if !ok {
		return []string{"the status is not described"}
	}
	described, _ := response["headers"].(map[string]any)
	sent := make(map[string]string)
	mediaType := ""
	for _, h := range a.headers {
		if h[0] == "Content-Type" {
			mediaType = h[1]
			continue
		}
		sent[h[0]] = h[1]
		if described[h[0]] == nil {
			faults = append(faults, "the header "+h[0]+" is not described")
		}
	}
	for name, h := range described {
		h := o.resolve(h)
		v, ok := sent[name]
		switch {
		case ok:
			faults = append(faults, o.faults(h["schema"], parameterValue(h["schema"], v), name)...)
		case h["required"] == true:
			faults = append(faults, "the header "+name+" is missing")
		}
	}
	content, ok := response["content"].(map[string]any)
	if !ok || len(a.body) == 0 { // HEAD
		return faults
	}
	media, ok := content[mediaType].(map[string]any)
	if !ok {
		return append(faults, "the media type "+mediaType+" is not described")
	}
	v, err := decodeJSON(a.body)
	if err != nil {
		return append(faults, err.Error())
	}
	if code := a.code(); code != "" && media["examples"].(map[string]any)[code] == nil {
		faults = append(faults, fmt.Sprintf("the code %s is not among those of the status", code))
	}
	return append(faults, o.faults(media["schema"], v, "body")...)
}

// TestOpenAPIExamplesAreValid: what the document shows is what it says.
func TestOpenAPIExamplesAreValid(t *testing.T) {
	d := openAPI(t)
	checked := 0
	var walk func(v any, at string)
	walk = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			if schema, ok := v["schema"]; ok {
				if example, ok := v["example"]; ok {
					checked++
					for _, f := range d.faults(schema, example, at) {
						t.Error(f)
					}
				}
				examples, _ := v["examples"].(map[string]any)
				for name, e := range examples {
					checked++
					for _, f := range d.faults(schema, d.resolve(e)["value"], at+"/"+name) {
						t.Error(f)
					}
				}
			}
			for name, inner := range v {
				walk(inner, at+"/"+name)
			}
		case []any:
			for i, inner := range v {
				walk(inner, fmt.Sprintf("%s/%d", at, i))
			}
		}
	}
	walk(map[string]any(d), "#")
	if checked < 50 {
		t.Errorf("only %d examples were found", checked)
	}
}
