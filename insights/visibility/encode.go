package visibility

import (
	"encoding/binary"
	"errors"
	"strings"
)

// The three columns of a chunk are sequences of unsigned varints (encoding/binary). A text is its length in bytes and
// its bytes. The first byte is the version of the encoding. Numbers of cells, ordinals and brands are written as the
// difference from the number before.
const form = 1

// errDamaged is returned for bytes that encode did not write.
var errDamaged = errors.New("facts are damaged")

// appendText appends the length of a text and the text.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendInts appends numbers, none of which may be negative.
func appendInts(b []byte, numbers ...int32) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// versions numbers the served models of a chunk: 0 is none.
type versions struct {
	texts []string
	index map[string]int32
}

// number returns the number of a version, and adds it if it is new.
func (v *versions) number(version *string) int32 {
	if version == nil {
		return 0
	}
	if v.index == nil {
		v.index = make(map[string]int32)
	}
	n, found := v.index[*version]
	if !found {
		v.texts = append(v.texts, *version)
		n = int32(len(v.texts))
		v.index[*version] = n
	}
	return n
}

// append appends the texts of the versions, by which the reader resolves their numbers.
func (v *versions) append(b []byte) []byte {
	b = appendInts(b, int32(len(v.texts)))
	for _, text := range v.texts {
		b = appendText(b, text)
	}
	return b
}

// encodeCells returns the column cells.
func encodeCells(cells []cell) []byte {
	// The versions come before the cells that refer to them, so all cells are read twice.
	var all versions
	for i := range cells {
		all.number(cells[i].version)
	}
	b := appendInts(all.append([]byte{form}), int32(len(cells)))
	before := int32(0)
	for i := range cells {
		c := &cells[i]
		b = appendInts(b, c.no-before, all.number(c.version), c.ok, c.empty, c.truncated, c.failed, c.known, c.pages, int32(len(c.brands)))
		before = c.no
		brand := int32(0)
		for j := range c.brands {
			s := &c.brands[j]
			b = appendInts(b, s.brand-brand, s.mentioned, s.mentions, s.first, s.positions, s.cited, s.pages)
			brand = s.brand
		}
	}
	return b
}

// encodeSources returns the column sources. Most sources of a cell are cited once, which takes one number.
func encodeSources(sources []source, cells []sourceCell) []byte {
	b := appendInts([]byte{form}, int32(len(sources)))
	for _, s := range sources {
		b = appendInts(appendText(b, s.host), s.owner)
	}
	b = appendInts(b, int32(len(cells)))
	before := int32(0)
	for i := range cells {
		c := &cells[i]
		b = appendInts(b, c.no-before, c.pages, c.gapPages, int32(len(c.sources)))
		before = c.no
		for _, s := range c.sources {
			switch {
			// Bit 0 of the number is gap, and bit 1 is manyCitations.
			case s.answers == 1 && s.pages == 1 && s.gap == s.gapAnswers:
				b = binary.AppendUvarint(b, uint64(s.source)<<2|uint64(s.gap))
			default:
				b = binary.AppendUvarint(b, uint64(s.source)<<2|manyCitations)
				b = appendInts(b, s.answers, s.pages, s.gapAnswers, s.gap)
			}
		}
	}
	return b
}

// manyCitations marks a source of a cell that is not cited exactly once.
const manyCitations = 2

// encodeFacts returns the column facts. Pages are listed in the order of their first citation, so that most citations
// are the next page of the list, which is written as 0.
func encodeFacts(facts []Fact) []byte {
	var all versions
	n := countPages(facts)
	pages, index := make([]Page, 0, n), make(map[Page]int32, n)
	for i := range facts {
		all.number(facts[i].Version)
		for _, p := range facts[i].Pages {
			if _, found := index[p]; !found {
				index[p] = int32(len(pages))
				pages = append(pages, p)
			}
		}
	}
	const ofPage, ofFact = 64, 32 // bytes; most need less
	b := all.append(append(make([]byte, 0, len(pages)*ofPage+len(facts)*ofFact), form))
	b = appendInts(b, int32(len(pages)))
	for _, p := range pages {
		b = appendText(b, p.Key)
		if p.Host == hostOfKey(p.Key) {
			// The low bit tells whether a host follows: only behind an opaque redirector it differs from the host of
			// the key.
			b = appendInts(b, p.Owner<<1)
		} else {
			b = appendText(appendInts(b, p.Owner<<1|1), p.Host)
		}
	}
	b = appendInts(b, int32(len(facts)))
	// next is the page that a fact is expected to cite: the first that no fact before it has cited.
	before, next := int32(0), int32(0)
	for i := range facts {
		f := &facts[i]
		known := int32(0)
		if f.Known {
			known = 1
		}
		// One number has the version, two bits of the status, and whether the sources are known.
		b = appendInts(b, f.Ordinal-before, all.number(f.Version)<<3|int32(f.Status)<<1|known)
		before = f.Ordinal
		// Other facts have no brands and no pages.
		if f.Status != OK {
			continue
		}
		b = appendInts(b, int32(len(f.Brands)))
		brand := int32(0)
		for j := range f.Brands {
			s := &f.Brands[j]
			// The three flags of package match take the low bits.
			b = appendInts(b, s.Brand-brand, s.Mentions<<3|int32(s.Flags), s.Position, s.Citations)
			brand = s.Brand
		}
		b = appendInts(b, int32(len(f.Pages)))
		for _, p := range f.Pages {
			at := index[p]
			// Pages are numbered by their first citation, so at is never more than next.
			b = appendInts(b, next-at)
			if at == next {
				next++
			}
		}
	}
	return b
}

// countPages returns the number of pages of all facts. A page of several answers counts in each.
func countPages(facts []Fact) (n int) {
	for i := range facts {
		n += len(facts[i].Pages)
	}
	return n
}

// hostOfKey returns the host of a page key, without port and brackets.
func hostOfKey(key string) string {
	for i := range len(key) {
		switch key[i] {
		case '[':
			if host, _, closed := strings.Cut(key[i+1:], "]"); closed {
				return host
			}
		case ':', '/', '?', '#':
			return key[:i]
		}
	}
	return key
}
