package gateway

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

// shown is what the validator sets in the schema of a member that a value has.
const shown = "x-shown"

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
	kind, size := typeOf(v)
	text, _ := v.(string)
	array, _ := v.([]any)
	members, isObject := v.(map[string]any)
	for keyword, want := range schema.(map[string]any) {
		list, isList := want.([]any)
		switch keyword {
		case "$ref":
			f = append(f, d.faults(d.at(want.(string)), v, at)...)
		case "type":
			if !isList {
				list = []any{want}
			}
			if !slices.Contains(list, any(kind)) && !(kind == "integer" && slices.Contains(list, any("number"))) {
				wrong("type %s, want %v", kind, want)
			}
		case "enum":
			if !slices.Contains(list, v) {
				wrong("%v is not one of %v", v, want)
			}
		case "const":
			if v != want {
				wrong("%v is not %v", v, want)
			}
		case "format":
			if _, err := time.Parse(time.RFC3339Nano, text); kind == "string" && want == "date-time" && err != nil {
				wrong("%q is not a date-time", text)
			}
		case "pattern":
			if kind == "string" && !regexp.MustCompile(want.(string)).MatchString(text) {
				wrong("%q does not match %v", text, want)
			}
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
			bound, _ := want.(json.Number).Float64()
			n, ok := size[keyword[3:]]
			if ok && (keyword[:3] == "min" && n < bound || keyword[:3] == "max" && n > bound) {
				wrong("%v exceeds the %s %v", n, keyword, want)
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
			for _, name := range list {
				if _, ok := members[name.(string)]; isObject && !ok {
					wrong("%v is missing", name)
				}
			}
		case "properties":
			for name, member := range members {
				if p, ok := want.(map[string]any)[name]; ok {
					p.(map[string]any)[shown] = true
					f = append(f, d.faults(p, member, at+"/"+name)...)
				} else {
					wrong("the member %s is not described", name)
				}
			}
		case "anyOf":
			if !slices.ContainsFunc(list, func(s any) bool { return len(d.faults(s, v, at)) == 0 }) {
				wrong("matches none of %d alternatives", len(list))
			}
		case "additionalProperties", "description", "default", "examples", "x-problems", "x-enumDescriptions", shown:
		default:
			wrong("the schema has the keyword %s, which this validator does not support", keyword)
		}
	}
	return f
}

// typeOf returns the type of a value, and its size by the ends of the keywords that bound it.
func typeOf(v any) (kind string, size map[string]float64) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return "boolean", nil
	case string:
		return "string", map[string]float64{"Length": float64(utf8.RuneCountInString(v))}
	case []any:
		return "array", map[string]float64{"Items": float64(len(v))}
	case json.Number:
		n, _ := v.Float64()
		if kind = "integer"; strings.ContainsAny(v.String(), ".eE") {
			kind = "number"
		}
		return kind, map[string]float64{"imum": n}
	}
	return "object", nil
}
