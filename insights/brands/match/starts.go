package match

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// maxStart is how many letters and digits of a name are compared. That many tell most words from it.
const maxStart = 6

// A startSet has the beginnings of all names, phrases and domains of a Matcher. With it one fast pass over the source
// of a block finds out that the block names no brand. Most blocks name none, and are not read any further.
//
// The pass may be wrong in one direction only: each block that names a brand passes. An occurrence begins with a
// letter, a digit or one of a few signs, behind a character that is neither letter nor digit. What is invisible in a
// block (marks of emphasis, tags, destinations of links and the like) begins and ends with punctuation. So of letters
// and digits in a row either all are visible or none is.
type startSet struct {
	trie    phraseTrie
	kinds   [utf8.RuneSelf]startKind
	seconds [utf8.RuneSelf]uint32 // of each first character, bits c&31 of the characters c that follow it
	encoded bool                  // a domain has an A-label, whose letters differ from those in a text
}

// A startKind is what a startSet knows of an ASCII character.
type startKind uint8

const (
	startSeparator startKind = iota // neither letter nor digit
	startInside                     // a letter or digit with which nothing begins
	startFirst                      // a letter or digit with which something begins
	startSign                       // another character with which something begins
	startMarkup                     // it may begin a tag or a character reference
)

func newStartSet() *startSet {
	f := &startSet{trie: phraseTrie{nodes: make([]phraseNode, 1)}}
	for c := range rune(utf8.RuneSelf) {
		switch {
		case wordBytes[c]:
			f.kinds[c] = startInside
		case c == '<' || c == '&':
			f.kinds[c] = startMarkup
		}
	}
	return f
}

// addPattern adds what a pattern begins with.
func (f *startSet) addPattern(p *pattern) {
	switch {
	case p.hostShaped:
		f.add(plain(p.chars))
	case p.dot:
		f.add(".")
	case len(p.tokens) > 0:
		f.add(plain(p.chars[p.tokens[0].start:p.tokens[0].end]))
	}
}

// addDomain adds a host of a brand.
func (f *startSet) addDomain(host string) {
	f.add(host)
	f.encoded = f.encoded || strings.Contains(host, "xn--")
}

// add adds the beginning of a normal form. What follows it may be written in several ways.
func (f *startSet) add(text string) {
	if text[0] >= utf8.RuneSelf { // mayBeIn expects these letters anyway
		return
	}
	if !wordBytes[text[0]] {
		f.kinds[text[0]] = startSign
		return
	}
	n, length := int32(0), 0
	for length < min(maxStart, len(text)) && wordBytes[text[length]] {
		n = f.trie.grow(n, rune(text[length]))
		length++
	}
	f.trie.nodes[n].uses = 1
	seconds := ^uint32(0)
	if length > 1 {
		seconds = 1 << (text[1] & 31)
	}
	for _, c := range []byte{text[0], upperASCII(text[0])} {
		f.kinds[c] = startFirst
		f.seconds[c] |= seconds
	}
}

// mayBeIn reports whether a block may name a brand.
func (f *startSet) mayBeIn(block []byte) bool {
	inWord := false
	for i := 0; i < len(block); {
		c := block[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(block[i:])
			switch {
			case isPlainSeparator(r):
				inWord = false
			case f.encoded || !isPlainLetter(r) || !inWord && f.kinds[plainLetter(r)] != startInside:
				return true
			default:
				inWord = true
			}
			i += size
			continue
		}
		switch kind := f.kinds[c]; kind {
		case startInside, startFirst:
			if kind == startFirst && !inWord && f.mayBegin(block[i:]) {
				return true
			}
			for i++; i < len(block) && wordBytes[block[i]]; i++ {
			}
			inWord = true
			continue
		case startSign:
			return true
		case startMarkup:
			if i+1 < len(block) && (wordBytes[block[i+1]] || block[i+1] == '/' || block[i+1] == '#') {
				return true
			}
		}
		inWord = false
		i++
	}
	return false
}

// mayBegin reports whether text, which begins with a letter or digit, may begin with something of the set.
func (f *startSet) mayBegin(text []byte) bool {
	if len(text) > 1 && wordBytes[text[1]] && f.seconds[text[0]]>>(text[1]&31)&1 == 0 {
		return false
	}
	n := int32(0)
	for _, c := range text {
		if !wordBytes[c] {
			return c >= utf8.RuneSelf || is(rune(c), asciiInline) // behind markup the word may go on
		}
		if n = f.trie.child(n, rune(lowerASCII(c))); n == 0 {
			return false
		}
		if f.trie.nodes[n].uses != 0 {
			return true
		}
	}
	return false
}

// wordBytes are the ASCII letters and digits.
var wordBytes = func() (table [256]bool) {
	for c := range rune(utf8.RuneSelf) {
		table[c] = is(c, asciiLetter|asciiDigit)
	}
	return table
}()

// isPlainSeparator reports whether r is punctuation that is visible, and stays punctuation in normal forms.
func isPlainSeparator(r rune) bool {
	switch r {
	case '«', '»', '·', '–', '—', '‘', '’', '“', '”', '„', '•', '…', '€', '\u00a0', '\u202f':
		return true
	}
	return false
}

// isPlainLetter reports whether r is a Latin letter whose normal form has only letters. That of ŉ has an apostrophe.
func isPlainLetter(r rune) bool {
	return 0xc0 <= r && r <= 0x24f && r != 0xd7 && r != 0xf7 && r != 0x13f && r != 0x140 && r != 0x149
}

// plainLetter returns the first letter of the normal form of a plain letter; 0: it is not ASCII.
func plainLetter(r rune) rune {
	var room [2]char
	n := normalizer{out: room[:0]}
	if n.add(r, 0); n.out[0].r >= utf8.RuneSelf {
		return 0
	}
	return n.out[0].r
}

// sourcesStarts has the last word of each heading of a list of sources.
var sourcesStarts = sync.OnceValue(func() *startSet {
	f := newStartSet()
	for heading := range sourcesHeadings {
		f.add(heading[strings.LastIndexByte(heading, ' ')+1:])
	}
	return f
})

// mayEndWithSources reports whether the answer may end with a list of sources: one of the blocks at the end that may
// have links or addresses, or the block before them, has a word of a heading.
func (s *scratch) mayEndWithSources() bool {
	last := true // no block so far shows anything for sure
	for k := len(s.blocks) - 1; k >= 0; k-- {
		block := s.src[s.blocks[k].start:s.blocks[k].end]
		cites, shown := readRoughly(block)
		prose := shown && !cites
		if !(last && prose) && sourcesStarts().mayBeIn(block) {
			return true
		}
		if prose {
			return false
		}
		last = last && !shown
	}
	return false
}

// readRoughly reports whether a block may have a link or an address. If it has none, shown tells whether it has an
// ASCII letter or digit.
func readRoughly(block []byte) (cites, shown bool) {
	for i, c := range block {
		switch {
		case c == '[', c == '<', c == '&', c == '@':
			return true, true
		case c == '.' || c == ':':
			if i+1 < len(block) && block[i+1] != ' ' && block[i+1] != '\n' {
				return true, true
			}
		default:
			shown = shown || wordBytes[c]
		}
	}
	return false, shown
}
