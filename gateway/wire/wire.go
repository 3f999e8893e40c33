// Package wire encodes JSON. It serves gateway and its subpackages.
//
// Encode uses encoding/json. The other functions append to a document without reflection: they are for what a response
// may contain hundreds of, such as the items of a page, where encoding/json would take most of the time of the request.
// Each but Item appends a member of an object, with a comma before it unless it is the first. The caller appends the
// brackets.
package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"aiv/store"
	"aiv/store/strictjson"
)

// Member appends a name. The caller appends the value.
func Member(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, '"', ':')
}

// Item begins an item of an array, with a comma unless it is the first. The caller appends the item.
func Item(b []byte) []byte {
	if b[len(b)-1] == '[' {
		return b
	}
	return append(b, ',')
}

// Int appends an integer.
func Int(b []byte, name string, n int) []byte {
	return strconv.AppendInt(Member(b, name), int64(n), 10)
}

// Text appends a string.
func Text(b []byte, name, s string) []byte { return strictjson.AppendString(Member(b, name), s) }

// TextOrNull appends a string, or null for nil.
func TextOrNull(b []byte, name string, s *string) []byte {
	if s == nil {
		return null(b, name)
	}
	return Text(b, name, *s)
}

// Texts appends an array of strings, or null for a nil slice.
func Texts(b []byte, name string, list []string) []byte {
	if list == nil {
		return null(b, name)
	}
	b = append(Member(b, name), '[')
	for _, s := range list {
		b = strictjson.AppendString(Item(b), s)
	}
	return append(b, ']')
}

// ID appends an id with its prefix.
func ID(b []byte, name, prefix string, id store.ID) []byte {
	b = append(Member(b, name), '"')
	b = id.AppendText(b, prefix)
	return append(b, '"')
}

// Time appends a time.
func Time(b []byte, name string, t time.Time) []byte {
	b = append(Member(b, name), '"')
	b = store.AppendTime(b, t)
	return append(b, '"')
}

// TimeOrNull appends a time, or null for nil.
func TimeOrNull(b []byte, name string, t *time.Time) []byte {
	if t == nil {
		return null(b, name)
	}
	return Time(b, name, *t)
}

func null(b []byte, name string) []byte { return append(Member(b, name), "null"...) }

// Encode returns v as encoding/json encodes it, but with < and & as they are. It panics if v cannot be encoded; wire
// types can.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()[:b.Len()-1] // without the line feed
}
