package gateway_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aiv/insights/visibility"
)

// compareWire compares the objects of a schema with a wire type: the names and types of members, and whether they are
// required. compared has the wire type of each component that was compared.
func (d schemaDocument) compareWire(t *testing.T, name string, wire reflect.Type, schema any, compared map[string]reflect.Type) {
	t.Helper()
	s := schema.(map[string]any)
	if wire.Kind() == reflect.Pointer {
		wire = wire.Elem()
	}
	if ref, ok := s["$ref"].(string); ok {
		name = ref[strings.LastIndexByte(ref, '/')+1:]
		s = d.at(ref).(map[string]any)
		if compared[name] == wire {
			return
		}
		compared[name] = wire
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		d.compareWire(t, name, wire, alternatives[0], compared) // the other is null
		return
	}
	if items := s["items"]; items != nil && wire.Kind() == reflect.Slice {
		d.compareWire(t, name, wire.Elem(), items, compared)
		return
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return
	}
	if wire.Kind() != reflect.Struct {
		t.Errorf("%s: the schema is an object, the wire type %s", name, wire)
		return
	}
	members, required := []string{}, []any{}
	for _, f := range reflect.VisibleFields(wire) {
		if f.Anonymous {
			continue
		}
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		members = append(members, member)
		wireType := f.Type
		if options != "omitempty" {
			required = append(required, member)
		} else if wireType.Kind() == reflect.Pointer {
			wireType = wireType.Elem() // left out, never null
		}
		p, ok := properties[member]
		if !ok {
			continue
		}
		got, want := strings.Join(d.typesOf(p), " or "), jsonType(wireType)
		if wireType.Kind() == reflect.Slice { // a nil slice is null where the schema says so
			got = strings.TrimSuffix(got, " or null")
		}
		if got != want {
			t.Errorf("%s.%s: type %s, want %s", name, member, got, want)
		}
		d.compareWire(t, name+"."+member, wireType, p, compared)
	}
	described := slices.AppendSeq([]string{}, maps.Keys(properties))
	if diff := cmp.Diff(members, described, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("%s: members (-program +openapi.json):\n%s", name, diff)
	}
	if got, ok := s["required"]; !ok && len(required) > 0 || ok && !cmp.Equal(got, any(required)) {
		t.Errorf("%s: required are %v, want %v", name, got, required)
	}
}

// typesOf returns the JSON types that a schema allows, null last.
func (d schemaDocument) typesOf(schema any) (types []string) {
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return d.typesOf(d.at(ref))
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, a := range alternatives {
		types = append(types, d.typesOf(a)...)
	}
	switch t := s["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, v := range t {
			types = append(types, v.(string))
		}
	}
	return types
}

// jsonType returns the JSON type of a Go type.
func jsonType(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return jsonType(t.Elem()) + " or null"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
	case t == reflect.TypeFor[visibility.Decimal]():
		return "number"
	}
	return map[reflect.Kind]string{
		reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
		reflect.Bool: "boolean", reflect.Slice: "array", reflect.Struct: "object",
	}[t.Kind()]
}
