package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// An operation is an operation of the document, with the body of the request that is validated.
type operation struct {
	schemaDocument
	name, method, path string
	spec               map[string]any
	body               []byte
}

func (o *operation) id() string { return o.spec["operationId"].(string) }

// parameters returns the parameters of the operation, resolved.
func (o *operation) parameters() (all []map[string]any) {
	list, _ := o.spec["parameters"].([]any)
	for _, p := range list {
		all = append(all, o.resolve(p))
	}
	return all
}

// routes returns the operations of routes, by path and method.
func (d schemaDocument) routes() (all []operation) {
	for path, item := range d["paths"].(map[string]any) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if spec, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any); ok && path != Base {
				all = append(all, operation{schemaDocument: d, name: method + " " + path, method: method, path: path, spec: spec})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return all
}

// operationsOf returns the operations that an exchange uses: one of the base path, one of the route.
func (d schemaDocument) operationsOf(g *filledExchange) (found []operation) {
	outer := strings.ToLower(strings.Replace(g.request.Method, "HEAD", "GET", 1))
	spec, ok := d["paths"].(map[string]any)[Base].(map[string]any)[outer].(map[string]any)
	if g.request.URL.EscapedPath() == Base && ok {
		found = append(found, operation{schemaDocument: d, spec: spec, body: g.body})
	}
	method, address, body := g.routeCall()
	path, _, _ := strings.Cut(address, "?")
	for _, o := range d.routes() {
		if o.method == method && matches(o.path, path) {
			o.body = body
			return append(found, o)
		}
	}
	return found
}

// bodySchema returns the schema of the body of the request, or nil.
func (o *operation) bodySchema() map[string]any {
	body, ok := o.spec["requestBody"].(map[string]any)
	if !ok {
		return nil
	}
	return o.resolve(o.resolve(body)["content"].(map[string]any)["application/json"].(map[string]any)["schema"])
}

// bodyFaults returns what the operation does not allow in the body of the request.
func (o *operation) bodyFaults() []string {
	schema := o.bodySchema()
	if schema == nil {
		return nil
	}
	v, err := decodeJSON(o.body)
	if err != nil {
		return []string{err.Error()}
	}
	return o.faults(schema, v, "body")
}

// headerValue decodes the text of a header as its schema describes it.
func (o *operation) headerValue(schema any, text string) any {
	if v, err := decodeJSON([]byte(text)); err == nil && o.resolve(schema)["type"] != "string" {
		return v
	}
	return text
}

// responseFaults returns what the operation does not describe in a response.
func (o *operation) responseFaults(a answer, hasRoute bool) (faults []string) {
	responses := o.spec["responses"].(map[string]any)
	found := cmp.Or(responses[strconv.Itoa(a.status)], responses[strconv.Itoa(a.status/100)+"XX"])
	if found == nil {
		return []string{"the status is not described"}
	}
	response := o.resolve(found)
	described, _ := response["headers"].(map[string]any)
	sent := make(map[string]string)
	for _, h := range a.headers {
		sent[h[0]] = h[1]
		if described[h[0]] == nil && h[0] != "Content-Type" {
			faults = append(faults, "the header "+h[0]+" is not described")
		}
	}
	counted := a.status != http.StatusUnauthorized && a.status < 500 // the key was valid, so that the request was counted
	for name, h := range described {
		h := o.resolve(h)
		v, ok := sent[name]
		switch {
		case ok:
			faults = append(faults, o.faults(h["schema"], o.headerValue(h["schema"], v), name)...)
		case h["required"] == true, counted && strings.Contains(name, "RateLimit"):
			faults = append(faults, "the header "+name+" is missing")
		}
	}
	content, ok := response["content"].(map[string]any)
	if !ok || len(a.body) == 0 { // HEAD
		return faults
	}
	mediaType, _, _ := strings.Cut(sent["Content-Type"], ";")
	media, ok := content[mediaType].(map[string]any)
	if !ok {
		return append(faults, "the media type "+mediaType+" is not described")
	}
	if mediaType == "text/csv" {
		return append(faults, o.faults(media["schema"], string(a.body), "body")...)
	}
	v, err := decodeJSON(a.body)
	if err != nil {
		return append(faults, err.Error())
	}
	if code := a.code(); code != "" && !o.hasCode(response, a.status, code) && (o.name != "" || !hasRoute) {
		faults = append(faults, fmt.Sprintf("the code %s is not one of the response", code))
	}
	return append(faults, o.faults(media["schema"], v, "body")...)
}

// hasCode reports whether a response has a problem code: it lists the code in x-codes, or it has x-run-checks and the
// code has a check and the status.
func (o *operation) hasCode(response map[string]any, status int, code string) bool {
	if codes, _ := response["x-codes"].([]any); slices.Contains(codes, any(code)) {
		return true
	}
	return response["x-run-checks"] == true && slices.ContainsFunc(o.codes(), func(c problemCode) bool {
		return c.code == code && c.check != "" && c.status == status
	})
}
