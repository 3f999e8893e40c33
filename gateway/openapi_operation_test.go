package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"aiv/gateway"
)

// An operation is an operation of the document, with the call that is validated.
type operation struct {
	schemaDocument
	name, method, path string
	spec               map[string]any
	call               *call
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
			if spec, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any); ok && path != gateway.Base {
				all = append(all, operation{schemaDocument: d, name: method + " " + path, method: method, path: path, spec: spec})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return all
}

// baseOperation returns the operation at the base path that an exchange uses, or nil.
func (d schemaDocument) baseOperation(g *filled) *operation {
	method := strings.Replace(g.request.Method, "HEAD", "GET", 1)
	spec, ok := d["paths"].(map[string]any)[gateway.Base].(map[string]any)[strings.ToLower(method)].(map[string]any)
	if g.request.URL.EscapedPath() != gateway.Base || !ok {
		return nil
	}
	return &operation{schemaDocument: d, spec: spec, call: &call{method, "", g.queryPairs(), g.body}}
}

// routeOperation returns the operation of the route that an exchange calls, or nil.
func (d schemaDocument) routeOperation(g *filled) *operation {
	c := g.routeCall()
	if c == nil {
		return nil
	}
	for _, o := range d.routes() {
		if o.method == c.method && matches(o.path, c.path) {
			o.call = c
			return &o
		}
	}
	return nil
}

// requestFaults returns what the operation does not allow in a request.
func (o *operation) requestFaults(g *filled) (faults []string) {
	given := make(map[string][]string) // by "query limit"
	for _, pair := range o.call.query {
		name, v, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(v)
		if name, nameErr := url.QueryUnescape(name); err != nil || nameErr != nil || strings.Contains(pair, ";") {
			faults = append(faults, "the query is malformed")
		} else {
			given["query "+name] = append(given["query "+name], plain)
		}
	}
	parts := segments(o.call.path)
	for i, part := range strings.Split(o.path, "/") {
		if strings.HasPrefix(part, "{") {
			given["path "+strings.Trim(part, "{}")] = parts[i : i+1]
		}
	}
	anyParameter := false
	for _, p := range o.parameters() {
		name, key := p["name"].(string), p["in"].(string)+" "+p["name"].(string)
		if p["explode"] == true { // the parameters of the route
			anyParameter = true
			continue
		}
		if p["in"] == "header" {
			given[key] = g.request.Header.Values(name)
		}
		switch values := given[key]; {
		case len(values) > 1 && name != "If-None-Match":
			faults = append(faults, key+" is given twice")
		case len(values) == 0 && p["required"] == true:
			faults = append(faults, key+" is missing")
		case len(values) > 0:
			faults = append(faults, o.faults(p["schema"], o.parameterValue(p["schema"], values[0]), key)...)
		}
		delete(given, key)
	}
	for key := range given {
		if !anyParameter {
			faults = append(faults, key+" is not a parameter")
		}
	}
	return append(faults, o.bodyFaults(g)...)
}

// parameterValue decodes the text of a parameter or header as its schema describes it.
func (o *operation) parameterValue(schema any, text string) any {
	switch o.resolve(schema)["type"] {
	case "integer":
		if _, err := strconv.Atoi(text); err == nil && text[0] != '+' {
			return json.Number(text)
		}
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	case "array":
		return gateway.Anys(strings.Split(text, ","))
	}
	return text
}

func (o *operation) bodyFaults(g *filled) []string {
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
		return []string{"a body of the type " + types[0] + " is not allowed"}
	}
	v, err := decodeJSON(o.call.body)
	if err != nil {
		return []string{err.Error()}
	}
	return o.faults(content["schema"], v, "body")
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
			faults = append(faults, o.faults(h["schema"], o.parameterValue(h["schema"], v), name)...)
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
