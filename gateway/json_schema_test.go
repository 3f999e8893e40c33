package gateway_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A schemaDocument validates values by the subset of JSON Schema (2020-12) that openapi.json uses. It is stricter in
// two ways: a member without a schema is a fault, so that all members are described, and 3.0 is not an integer.
type schemaDocument map[string]any

// at returns the value at a JSON pointer.
func (d schemaDocument) at(ref string) any {
	var v any = map[string]any(d)
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		v = v.(map[string]any)[name]
	}
	if v == nil {
		panic("openapi.json has no " + ref)
	}
	return v
}

// resolve returns the target of a value that is a reference, or the value itself.
func (d schemaDocument) resolve(v any) map[string]any {
	m := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return d.at(ref).(map[string]any)
	}
	return m
}

// faults returns what is wrong with a value; at is its position.
func (d schemaDocument) faults(schema, v any, at string) (f []string) {
	wrong := func(format string, args ...any) { f = append(f, at+": "+fmt.Sprintf(format, args...)) }
	s := schema.(map[string]any)
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	array, isArray := v.([]any)
	members, isObject := v.(map[string]any)
	for keyword, want := range s {
		switch keyword {
		case "$ref":
			f = append(f, d.faults(d.at(want.(string)), v, at)...)
		case "type":
			types, ok := want.([]any)
			if !ok {
				types = []any{want}
			}
			if got := typeOf(v); !slices.Contains(types, any(got)) && !(got == "integer" && slices.Contains(types, any("number"))) {
				wrong("type %s, want %v", got, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				wrong("%v is not one of %v", v, want)
			}
		case "const":
			if v != want {
				wrong("%v is not %v", v, want)
			}
		case "format":
			if _, err := time.Parse(time.RFC3339Nano, text); isText && want == "date-time" && err != nil {
				wrong("%q is not a date-time", text)
			}
		case "pattern":
			if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
				wrong("%q does not match %v", text, want)
			}
		case "minimum", "maximum":
			if x, _ := number.Float64(); isNumber {
				if bound, _ := want.(json.Number).Float64(); keyword == "minimum" && x < bound || keyword == "maximum" && x > bound {
					wrong("%v exceeds the %s %v", number, keyword, want)
				}
			}
		case "minLength", "maxLength", "minItems", "maxItems":
			n, counts := utf8.RuneCountInString(text), isText
			if strings.HasSuffix(keyword, "Items") {
				n, counts = len(array), isArray
			}
			if bound, _ := want.(json.Number).Int64(); counts && (keyword[:3] == "min" && n < int(bound) || keyword[:3] == "max" && n > int(bound)) {
				wrong("%d exceeds the %s %v", n, keyword, want)
			}
		case "items":
			for i, item := range array {
				f = append(f, d.faults(want, item, fmt.Sprintf("%s/%d", at, i))...)
			}
		case "uniqueItems":
			for i, item := range array {
				if slices.Contains(array[:i], item) {
					wrong("%v is a duplicate", item)
				}
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := members[name.(string)]; isObject && !ok {
					wrong("%v is missing", name)
				}
			}
		case "properties":
			for name, member := range members {
				if p, ok := want.(map[string]any)[name]; ok {
					f = append(f, d.faults(p, member, at+"/"+name)...)
				} else {
					wrong("the member %s is not described", name)
				}
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(s any) bool { return len(d.faults(s, v, at)) == 0 }) {
				wrong("matches none of %d alternatives", len(want.([]any)))
			}
		case "additionalProperties", "description", "default", "examples", "x-problems", "x-enumDescriptions":
		default:
			wrong("the schema has the keyword %s, which this validator does not support", keyword)
		}
	}
	return f
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return "object"
}
