package match

import (
	"strings"
	"unicode/utf8"
)

// The first maxStart letters and digits of a name are compared. They distinguish most words from the name.
const maxStart = 6

// A startSet has the beginnings of all names, phrases and domains of a Matcher. With it one fast pass over the source
// of a block finds out that the block names no brand. Most blocks name none, and are not read any further.
//
// The pass may be wrong in one direction only: each block that names a brand passes. An occurrence begins with a
// letter, a digit or one of a few signs, after a character that is neither letter nor digit. What is invisible in a
// block (marks of emphasis, tags, destinations of links and the like) begins and ends with punctuation. So of letters
// and digits in a row either all are visible or none is.
type startSet struct {
	trie    phraseTrie
	kinds   [utf8.RuneSelf]startKind
	begins  [256]uint64 // of each byte, two bits for each class of the byte after it: behindSeparator and behindAny
	encoded bool        // a domain has an A-label, whose letters differ from those in a text
}

// Bits of startSet.begins: whether there is something to look at closely.
const (
	behindSeparator = 1 << iota // unless a letter or digit precedes
	behindAny
	anyNext  = 1<<64 - 1 // both, for each class
	eachNext = anyNext / (behindSeparator | behindAny) * behindSeparator
)

// Classes of the byte after the first one of a name. Letters and digits have the class c&31.
const (
	wordMayGoOn = 0 // after markup
	wordEnds    = 31
)

// secondShifts are the positions of the bits in startSet.begins, by the second byte.
var secondShifts = func() (table [256]uint8) {
	for c := range 256 {
		class := wordEnds
		switch {
		case wordBytes[c]:
			class = c & 31
		case c >= utf8.RuneSelf || is(rune(c), asciiInline):
			class = wordMayGoOn
		}
		table[c] = uint8(2 * class)
	}
	return table
}()

// lookBehind are the bits of startSet.begins that apply after a byte.
var lookBehind = func() (table [256]uint8) {
	for c := range table {
		table[c] = behindAny | behindSeparator
		if wordBytes[c] {
			table[c] = behindAny
		}
	}
	return table
}()

// A startKind is what a startSet knows of an ASCII character.
type startKind uint8

const (
	startSeparator startKind = iota // neither letter nor digit
	startInside                     // a letter or digit with which nothing begins
	startFirst                      // a letter or digit with which something begins
	startSign                       // another character with which something begins
	startMarkup                     // it may begin a tag or a character reference
)

// newStartSet returns an empty set, with which only blocks with markup or characters beyond ASCII may pass.
func newStartSet() *startSet {
	f := &startSet{trie: newPhraseTrie()}
	for c := range 256 {
		switch {
		case c >= utf8.RuneSelf:
			f.begins[c] = anyNext
		case wordBytes[c]:
			f.kinds[c] = startInside
		case c == '<' || c == '&':
			f.kinds[c] = startMarkup
			f.begins[c] = anyNext
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
		f.begins[text[0]] = anyNext
		return
	}
	n, length := int32(0), 0
	for length < min(maxStart, len(text)) && wordBytes[text[length]] {
		n = f.trie.grow(n, rune(text[length]))
		length++
	}
	f.trie.nodes[n].uses = 1
	seconds := uint64(eachNext)
	// The second character must follow, or markup, after which the word may go on.
	if length > 1 {
		seconds = behindSeparator<<secondShifts[text[1]] | behindSeparator<<(2*wordMayGoOn)
	}
	// Blocks are read before their case is folded.
	for _, c := range []byte{text[0], upperASCII(text[0])} {
		f.kinds[c] = startFirst
		f.begins[c] |= seconds
	}
}

// mayBeIn reports whether a block may name a brand.
func (f *startSet) mayBeIn(block []byte) bool {
	look := uint8(behindSeparator | behindAny)
	for i := 0; ; i++ {
		if i, look = f.suspect(block, i, look); i == len(block) {
			return false
		}
		c := block[i]
		// A character beyond ASCII is judged by itself: separators and Latin letters are known well enough, anything
		// else passes.
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(block[i:])
			// lookBehind leaves only this bit after a letter or digit.
			inWord := look == behindAny
			switch {
			case isPlainSeparator(r):
				look = behindSeparator | behindAny
			// A plain letter begins a name only outside of a word and if its ASCII form does. plainLetter is 0 for a
			// letter without one, and 0 is never startInside.
			case f.encoded || !isPlainLetter(r) || !inWord && f.kinds[plainLetter(r)] != startInside:
				return true
			default:
				look = behindAny
			}
			// The loop adds the last byte.
			i += size - 1
			continue
		}
		switch f.kinds[c] {
		case startFirst:
			if f.mayBegin(block[i:]) {
				return true
			}
		case startSign:
			return true
		// A tag or a reference may hide or stand for the beginning of a name. A lone < or & does neither.
		case startMarkup:
			if i+1 < len(block) && (wordBytes[block[i+1]] || block[i+1] == '/' || block[i+1] == '#') {
				return true
			}
		}
		look = lookBehind[c]
	}
}

// suspect returns the first index from i on at which something may begin, else the block's length, and what applies
// there. Each character takes one test: of the character, the next one and what precedes.
func (f *startSet) suspect(block []byte, i int, look uint8) (int, uint8) {
	if i >= len(block) {
		return len(block), look
	}
	c := block[i]
	for ; i+1 < len(block); i++ {
		next := block[i+1]
		// The mask changes nothing. It lets the compiler leave out the code for shifts of 64 bits or more.
		if uint8(f.begins[c]>>(secondShifts[next]&63))&look != 0 {
			return i, look
		}
		look, c = lookBehind[c], next
	}
	// The last byte of the block is followed by nothing, which is as if the word ended.
	if uint8(f.begins[c]>>(2*wordEnds))&look != 0 {
		return i, look
	}
	return len(block), look
}

// mayBegin reports whether text, whose first character is of the kind startFirst, may begin with something of the set.
func (f *startSet) mayBegin(text []byte) bool {
	n := f.trie.first(rune(lowerASCII(text[0])))
	for _, c := range text[1:] {
		// text has all that the set keeps of a name.
		if f.trie.nodes[n].uses != 0 {
			return true
		}
		if !wordBytes[c] {
			return c >= utf8.RuneSelf || is(rune(c), asciiInline) // after markup the word may go on
		}
		// Nothing in the set begins with the characters so far.
		if n = f.trie.child(n, rune(lowerASCII(c))); n == 0 {
			return false
		}
	}
	return f.trie.nodes[n].uses != 0
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
	var from [2]segment
	n := normalizer{out: room[:0], from: from[:0], ascii: &asciiNormal}
	if n.add(r, 0); n.out[0].r >= utf8.RuneSelf {
		return 0
	}
	return n.out[0].r
}
