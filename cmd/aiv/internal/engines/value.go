package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A value is a JSON value of a response. Its methods do not fail: what is missing, null or of another type reads as
// nothing, because APIs add and change members. What an answer cannot do without is read by need.
type value struct{ any }

// at returns the member of a member, and so on.
func (v value) at(names ...string) value {
	for _, name := range names {
		o, _ := v.any.(map[string]any)
		v = value{o[name]}
	}
	return v
}

// list returns the items of a list, or none.
func (v value) list() []value {
	items, _ := v.any.([]any)
	values := make([]value, len(items))
	for i, item := range items {
		values[i] = value{item}
	}
	return values
}

// text returns a string, or "".
func (v value) text() string {
	s, _ := v.any.(string)
	return s
}

// count returns an integer from 0, or nil.
func (v value) count() *int64 {
	number, _ := v.any.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// word returns a string, or the literal of a number, as some APIs give codes.
func (v value) word() string {
	if n, ok := v.any.(json.Number); ok {
		return n.String()
	}
	return v.text()
}

// need returns the member of a value as a string or a list. The error names its path.
func need[T string | []any](v value, path, name string) (T, error) {
	if path != "" {
		path += "."
	}
	t, ok := v.at(name).any.(T)
	if !ok {
		return t, fmt.Errorf("%s%s is missing or of another type", path, name)
	}
	return t, nil
}

// maxValues bounds the memory that a body takes when it is parsed.
const maxValues = 1_000_000

// parse parses a body of UTF-8 with one JSON value.
func parse(body []byte) (v value, err error) {
	switch {
	case !utf8.Valid(body):
		return v, errors.New("the body is not UTF-8")
	case separators(body) > maxValues:
		return v, fmt.Errorf("the body has more than %d values", maxValues)
	// Valid rejects text after the value, which Decode would ignore.
	case !json.Valid(body):
		return v, errors.New("the body is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	// A float64 would change large integers.
	d.UseNumber()
	err = d.Decode(&v.any)
	return v, err
}

// separators returns how many commas and opening brackets are outside of strings: at least as many as there are values.
func separators(body []byte) (n int) {
	inString := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // the escaped character, which may be a quote
		case !inString && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
