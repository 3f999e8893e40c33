// Package strictjson reads strict JSON: RFC 8259 with the restrictions of RFC 7493 (I-JSON), so that no two readers can
// understand a document differently, and without U+0000, which PostgreSQL cannot store in text. Packages gateway and
// gateway/worker read request bodies with it, package store/jsonl reads files, and cmd/aiv/internal/work checks
// answers. It also appends strings to responses.
//
// encoding/json is not used for reading because it takes the last of two equal members, matches names without regard to
// case and repairs invalid UTF-8: a client could send one thing and mean another.
package strictjson

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits bound a document beyond its size in bytes. A Value takes 72 bytes of memory and may take two in the document,
// so one MiB of "[0,0,0" would take more than 40 MB; with 10,000 values it takes 6 MB.
type Limits struct {
	Depth  int // nesting of arrays and objects
	Values int
}

// Parse reads one document: valid UTF-8 without a byte order mark that contains one value and nothing after it. Numbers
// keep their literal. An error is always an *Error.
//
// Names, numbers and strings without escapes are substrings of the text.
func Parse(text string, limits Limits) (Value, error) {
	if strings.HasPrefix(text, "\ufeff") {
		return Value{}, errorf(0, "the document begins with a byte order mark")
	}
	if !utf8.ValidString(text) {
		i := invalidUTF8(text)
		return Value{}, errorf(i, "byte 0x%02x is not valid UTF-8 here", text[i])
	}

	// The capacities suit a small request.
	p := parser{text: text, limits: limits, items: make([]Value, 0, 4), members: make([]Member, 0, 10)}
	if p.space(); p.pos == len(text) {
		return Value{}, errorf(p.pos, "the document is empty")
	}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.pos < len(text) {
		return Value{}, p.unexpected("nothing after the value")
	}
	return v, nil
}

// An Error reports the offset at which a document stops being strict JSON, and why. Its text may be shown to the
// client.
type Error struct {
	Offset int // in bytes
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Detail) }

// errorf returns an *Error.
func errorf(offset int, format string, args ...any) error {
	return &Error{offset, fmt.Sprintf(format, args...)}
}

// A parser reads text from pos on. It recurses, at most limits.Depth deep.
type parser struct {
	text   string
	limits Limits
	pos    int
	values int // begun so far

	// The elements of the arrays and objects being read; the elements of the innermost come last.
	items   []Value
	members []Member

	// The finished slices of arrays and objects are cut from these.
	itemSlab   slab[Value]
	memberSlab slab[Member]
}

// A slab allocates many short slices at once.
type slab[T any] struct {
	free []T
	made int // elements allocated so far
}

// clone returns a copy of s.
func (b *slab[T]) clone(s []T) []T {
	if len(s) > len(b.free) {
		b.free = make([]T, max(len(s), min(b.made, maxSlab)))
		b.made += len(b.free)
	}
	// The capacity ends with the slice, so that an append to it does not write into the next one.
	c := b.free[:len(s):len(s)]
	b.free = b.free[len(s):]
	copy(c, s)
	return c
}

// maxSlab bounds the elements that a slab allocates ahead.
const maxSlab = 256

// value reads a value inside of depth arrays and objects. White space before it has been read.
func (p *parser) value(depth int) (Value, error) {
	// The number is checked before the value is read, so the limit bounds memory.
	if p.values++; p.values > p.limits.Values {
		return Value{}, errorf(p.pos, "the document has more than %d values", p.limits.Values)
	}
	switch c := p.peek(); {
	case c == '"':
		s, err := p.string()
		return Value{Kind: KindString, Text: s}, err
	case c == '{' || c == '[':
		if depth == p.limits.Depth {
			return Value{}, errorf(p.pos, "arrays and objects nest more than %d deep", p.limits.Depth)
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
	return Value{}, p.unexpected("a value")
}

// array reads an array. p.pos is at its bracket.
func (p *parser) array(depth int) (Value, error) {
	p.pos++
	if p.space(); p.skip(']') {
		return Value{Kind: KindArray}, nil
	}
	// Elements are collected on a stack that all arrays share, and copied at the end to a slice of the right length.
	first := len(p.items)
	for more := true; more; {
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.items = append(p.items, v)
		if more, err = p.more(']'); err != nil {
			return Value{}, err
		}
	}
	items := p.itemSlab.clone(p.items[first:])
	p.items = p.items[:first]
	return Value{Kind: KindArray, Items: items}, nil
}

// object reads an object. p.pos is at its brace.
func (p *parser) object(depth int) (Value, error) {
	p.pos++
	if p.space(); p.skip('}') {
		return Value{Kind: KindObject}, nil
	}
	first := len(p.members)
	var names nameSet
	for more := true; more; {
		p.space()
		at := p.pos
		if p.peek() != '"' {
			return Value{}, p.unexpected("a member name in double quotes")
		}
		name, err := p.string()
		if err != nil {
			return Value{}, err
		}
		// Names are compared after their escapes are decoded.
		if !names.add(name, p.members[first:]) {
			return Value{}, errorf(at, "member %s appears twice", quoteShort(name))
		}
		if p.space(); !p.skip(':') {
			return Value{}, p.unexpected(`":" after a member name`)
		}
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.members = append(p.members, Member{name, v})
		if more, err = p.more('}'); err != nil {
			return Value{}, err
		}
	}
	members := p.memberSlab.clone(p.members[first:])
	p.members = p.members[:first]
	return Value{Kind: KindObject, Members: members}, nil
}

// more reads the comma or the closing bracket after an element.
func (p *parser) more(end byte) (bool, error) {
	p.space()
	if p.skip(',') {
		return true, nil
	}
	if p.skip(end) {
		return false, nil
	}
	return false, p.unexpected(fmt.Sprintf(`"," or "%c"`, end))
}

// A nameSet finds duplicate member names. Up to fewNames are compared one by one; a wider object gets a map, because
// ten thousand names would take fifty million comparisons.
type nameSet map[string]struct{}

const fewNames = 16

// add reports whether name is new to the object that has these members so far.
func (s *nameSet) add(name string, members []Member) bool {
	if len(members) < fewNames {
		for i := range members {
			if members[i].Name == name {
				return false
			}
		}
		return true
	}
	if *s == nil {
		*s = make(nameSet, 2*fewNames)
		for _, m := range members {
			(*s)[m.Name] = struct{}{}
		}
	}
	// The set grows only if the name is new. Comparing its length takes one look-up less than asking first.
	n := len(*s)
	(*s)[name] = struct{}{}
	return len(*s) > n
}
