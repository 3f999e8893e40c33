package reference

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A Schema is what of JSON Schema (2020-12) the reference needs.
type Schema struct {
	Ref string // the name of a shared schema; then only Description is set beside it

	Type        string // "" with AnyOf, or where anything goes
	Null        bool   // null stands there too
	Description string
	Enum        []string
	Const       string
	Format      string
	Pattern     string
	Min, Max    *int // of a number, of a string's length, of an array's length
	Default     any
	Example     any

	Items  *Schema // of an array
	Unique bool    // its items

	Members []Member // of an object; all of them are required but the optional ones
	Closed  bool     // no other members are taken
	AnyOf   []Schema
}

// A Member is a member of an object.
type Member struct {
	Name     string
	Schema   Schema
	Optional bool
}

// MarshalJSON writes the schema with its keys in the order in which people read them.
func (s Schema) MarshalJSON() ([]byte, error) {
	var o object
	if s.Ref != "" {
		o.add("$ref", "#/components/schemas/"+s.Ref)
	}
	switch {
	case s.Type != "" && s.Null:
		o.add("type", []string{s.Type, "null"})
	case s.Type != "":
		o.add("type", s.Type)
	}
	o.addSet("description", s.Description)
	if s.Const != "" {
		o.add("const", s.Const)
	}
	if len(s.Enum) > 0 {
		o.add("enum", s.Enum)
	}
	o.addSet("format", s.Format)
	o.addSet("pattern", s.Pattern)
	least, most := "minimum", "maximum"
	switch s.Type {
	case "string":
		least, most = "minLength", "maxLength"
	case "array":
		least, most = "minItems", "maxItems"
	}
	if s.Min != nil {
		o.add(least, *s.Min)
	}
	if s.Max != nil {
		o.add(most, *s.Max)
	}
	if s.Default != nil {
		o.add("default", s.Default)
	}
	if s.Items != nil {
		o.add("items", s.Items)
	}
	if s.Unique {
		o.add("uniqueItems", true)
	}
	if len(s.Members) > 0 {
		var properties object
		var required []string
		for _, m := range s.Members {
			properties.add(m.Name, m.Schema)
			if !m.Optional {
				required = append(required, m.Name)
			}
		}
		o.add("required", required)
		o.add("properties", properties)
	}
	if s.Closed {
		o.add("additionalProperties", false)
	}
	if len(s.AnyOf) > 0 {
		o.add("anyOf", s.AnyOf)
	}
	if s.Example != nil {
		o.add("examples", []any{s.Example})
	}
	return o.MarshalJSON()
}

// ObjectOf describes a wire type: its members, their order and their JSON types are the Go type's, and what else is to be
// said of each is taken from said. A struct in it is referred to by the name that it has in names. It panics when a member
// has nothing said of it, or something is said of no member: the wire type has been changed and its description not.
func ObjectOf(wire any, said map[string]Schema, names map[reflect.Type]string) Schema {
	t := reflect.TypeOf(wire)
	s := Schema{Type: "object"}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		m, ok := said[name]
		if !ok {
			panic(fmt.Sprintf("nothing is said of the member %s of %v", name, t))
		}
		if m.Ref == "" && m.Type == "" && len(m.AnyOf) == 0 {
			m = typed(m, f.Type, names)
		}
		s.Members = append(s.Members, Member{Name: name, Schema: m, Optional: options == "omitempty"})
	}
	if len(said) != len(s.Members) {
		panic(fmt.Sprintf("%d members of %v are described, but it has %d", len(said), t, len(s.Members)))
	}
	return s
}

// typed adds the JSON type of a Go type.
func typed(s Schema, t reflect.Type, names map[reflect.Type]string) Schema {
	if t.Kind() == reflect.Pointer {
		s.Null = true
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		s.Type = "string"
	case reflect.Int:
		s.Type = "integer"
	case reflect.Float64:
		s.Type = "number"
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.Slice:
		s.Type = "array"
		if s.Items == nil {
			s.Items = new(typed(Schema{}, t.Elem(), names))
		}
	case reflect.Struct:
		s.Ref = names[t]
	}
	if s.Type == "" && s.Ref == "" {
		panic(fmt.Sprintf("the wire type %v has no JSON type here", t))
	}
	return s
}

// An object is a JSON object whose members keep their order.
type object []entry

type entry struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, entry{name, value}) }

func (o *object) addSet(name, value string) {
	if value != "" {
		o.add(name, value)
	}
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		v, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		name, _ := json.Marshal(e.name)
		b.Write(name)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}
