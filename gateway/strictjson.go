package gateway

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseJSON reads one strict JSON document: RFC 8259 with what RFC 7493 (I-JSON) demands on top, so that no two readers
// of a request can understand it differently. encoding/json lets the last of two equal members win, matches names
// without regard to case and repairs broken text, each of which would let a client send one thing and mean another.
//
// The whole document must be UTF-8 without a byte order mark and hold one value and nothing after it. Numbers keep their
// literal; what they may be is their reader's to say. An error is always a *jsonError.
func parseJSON(data []byte) (value, error) {
	// One copy for the whole document: names, numbers and strings without escapes are substrings of it, and keep it.
	text := string(data)
	if strings.HasPrefix(text, "\ufeff") {
		return value{}, jsonErrorf(0, "the document begins with a byte order mark")
	}
	if !utf8.ValidString(text) {
		i := invalidUTF8(text)
		return value{}, jsonErrorf(i, "byte 0x%02x is not valid UTF-8 here", text[i])
	}

	p := jsonParser{text: text}
	if p.space(); p.pos == len(text) {
		return value{}, jsonErrorf(p.pos, "the document is empty")
	}
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	if p.space(); p.pos < len(text) {
		return value{}, p.unexpected("nothing after the value")
	}
	return v, nil
}

// What a document may hold beyond its bytes. A value costs 72 bytes in memory and may cost two in the document, so a
// mebibyte of "[0,0,0" would be some 40 MB and more while it grows; bounded, the worst mebibyte allocates some 6 MB. The
// largest legal body, 50 models and 500 questions at depth 3, is far below both bounds.
const (
	maxJSONDepth  = 16
	maxJSONValues = 10_000
)

// A kind is one of the JSON types.
type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// A value is a JSON value as the client sent it.
type value struct {
	kind    kind
	text    string   // a string's decoded text; a number's literal as sent; "true" or "false"
	items   []value  // of an array
	members []member // of an object, in the order sent; no name twice
}

// A member is one name and value of an object.
type member struct {
	name  string
	value value
}

// member returns the value of an object's member called exactly name.
func (v value) member(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// describe says what the value is, for the detail of an error: "must be a string, not an array".
func (v value) describe() string {
	switch v.kind {
	case kindBool:
		return "a boolean"
	case kindNumber:
		return "a number"
	case kindString:
		return "a string"
	case kindArray:
		return "an array"
	case kindObject:
		return "an object"
	}
	return "null"
}

// A jsonError says where a document stops being strict JSON, and why. It is fit for the client that sent the document.
type jsonError struct {
	offset int // in bytes
	detail string
}

func (e *jsonError) Error() string { return fmt.Sprintf("at byte %d: %s", e.offset, e.detail) }

func jsonErrorf(offset int, format string, args ...any) error {
	return &jsonError{offset, fmt.Sprintf(format, args...)}
}

// A jsonParser reads text from pos on. It recurses, at most maxJSONDepth deep.
type jsonParser struct {
	text   string
	pos    int
	values int // begun so far
}

func (p *jsonParser) value(depth int) (value, error) {
	if p.values++; p.values > maxJSONValues {
		return value{}, jsonErrorf(p.pos, "the document has more than %d values", maxJSONValues)
	}
	switch c := p.peek(); {
	case c == '"':
		s, err := p.string()
		return value{kind: kindString, text: s}, err
	case c == '{' || c == '[':
		if depth == maxJSONDepth {
			return value{}, jsonErrorf(p.pos, "arrays and objects nest more than %d deep", maxJSONDepth)
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '-' || isDigit(c):
		return p.number()
	case isLetter(c):
		return p.word()
	}
	return value{}, p.unexpected("a value")
}

func (p *jsonParser) array(depth int) (value, error) {
	p.pos++
	if p.space(); p.skip(']') {
		return value{kind: kindArray}, nil
	}
	var items []value
	for more := true; more; {
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return value{}, err
		}
		items = append(items, v)
		if more, err = p.more(']'); err != nil {
			return value{}, err
		}
	}
	return value{kind: kindArray, items: items}, nil
}

func (p *jsonParser) object(depth int) (value, error) {
	p.pos++
	if p.space(); p.skip('}') {
		return value{kind: kindObject}, nil
	}
	members := make([]member, 0, 8) // an envelope has 3, a run 7
	var names nameSet
	for more := true; more; {
		p.space()
		at := p.pos
		if p.peek() != '"' {
			return value{}, p.unexpected("a member name in double quotes")
		}
		name, err := p.string()
		if err != nil {
			return value{}, err
		}
		if !names.add(name, members) {
			return value{}, jsonErrorf(at, "member %s appears twice", quoteShort(name))
		}
		if p.space(); !p.skip(':') {
			return value{}, p.unexpected(`":" after a member name`)
		}
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return value{}, err
		}
		members = append(members, member{name, v})
		if more, err = p.more('}'); err != nil {
			return value{}, err
		}
	}
	return value{kind: kindObject, members: members}, nil
}

// more reads what follows an element: a comma, or the bracket that ends them.
func (p *jsonParser) more(end byte) (bool, error) {
	p.space()
	if p.skip(',') {
		return true, nil
	}
	if p.skip(end) {
		return false, nil
	}
	return false, p.unexpected(fmt.Sprintf(`"," or "%c"`, end))
}

// A nameSet holds the member names of one object, to find the one that comes again. Few are compared one by one; a wide
// object gets a map, or a body of ten thousand names would cost fifty million comparisons.
type nameSet map[string]struct{}

const fewNames = 16

// add reports whether name is new to the object that has these members so far.
func (s *nameSet) add(name string, members []member) bool {
	if len(members) < fewNames {
		return !slices.ContainsFunc(members, func(m member) bool { return m.name == name })
	}
	if *s == nil {
		*s = make(nameSet, 2*fewNames)
		for _, m := range members {
			(*s)[m.name] = struct{}{}
		}
	}
	n := len(*s)
	(*s)[name] = struct{}{}
	return len(*s) > n
}
