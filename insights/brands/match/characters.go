package match

import "unicode"

// A class decides what may stand beside the edge of an occurrence, see leftBound and rightBound.
type class uint8

const (
	other    class = iota // neither letter nor digit
	word                  // digits, and letters of scripts that separate words by spaces
	free                  // letters of scripts without spaces: Thai, Lao, Myanmar, Khmer, Han, Hiragana, Bopomofo
	katakana              // letters
	hangul                // letters
)

// A char is a character of a normal form (M4).
type char struct {
	r      rune // the character; for the placeholder of a host, -1 minus its index
	traits traits
}

// traits are what a character is, in one byte, because each character of an answer is written once and read often.
type traits uint8

const (
	classMask traits = 7               // its class; a mark has the class of its base
	inWord    traits = 1 << (iota + 2) // its class is word
	isAMark
	fromCapital
	mayBegin // what a Matcher searches, or a phrase of absence, may begin with it, unless it is inside a word
)

// traitsOf returns the traits of a character that has a class and nothing else.
func traitsOf(c class) traits {
	if c == word {
		return traits(c) | inWord
	}
	return traits(c)
}

func (c char) class() class    { return class(c.traits & classMask) }
func (c char) isMark() bool    { return c.traits&isAMark != 0 }
func (c char) isCapital() bool { return c.traits&fromCapital != 0 }

func (c char) isHost() bool { return c.r < 0 }

// isWord reports whether c is a letter, a mark or a digit. (Letters and digits are the characters whose class is not
// other.)
func (c char) isWord() bool { return c.traits&(classMask|isAMark) != 0 }

// Properties of ASCII characters, in asciiProperties.
const (
	asciiLetter   = 1 << iota
	asciiDigit    // 0-9
	asciiPunct    // visible, and neither letter nor digit
	asciiLabel    // may stand in a label of a host
	asciiLocal    // may stand before the @ of an e-mail address
	asciiURLHost  // may stand in a URL before the first / ? or #
	asciiURLAfter // may stand in a URL from the first / ? or # on
	asciiInline   // means something to the inline syntax
)

var asciiProperties = func() (table [128]uint8) {
	for c := range byte(128) {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			table[c] = asciiLetter | asciiLabel | asciiLocal | asciiURLHost | asciiURLAfter
		case '0' <= c && c <= '9':
			table[c] = asciiDigit | asciiLabel | asciiLocal | asciiURLHost | asciiURLAfter
		case '!' <= c && c <= '~':
			table[c] = asciiPunct | asciiURLAfter
		}
	}
	// These sets add to the properties of the three kinds of characters above, or take from them.
	for _, set := range []struct {
		characters string
		add, drop  uint8
	}{
		{"-", asciiLabel, 0},
		{"._%+-", asciiLocal, 0},
		{"-._:@%", asciiURLHost, 0},
		// Characters that no URL contains unencoded, and that usually end one in prose.
		{"<>\"`\\^{|}", 0, asciiURLAfter},
		{"\\`<&[]*~_\n", asciiInline, 0},
	} {
		for _, c := range set.characters {
			table[c] = table[c]&^set.drop | set.add
		}
	}
	return table
}()

// is reports whether r is an ASCII character with one of the properties.
func is(r rune, properties uint8) bool { return uint32(r) < 128 && asciiProperties[r]&properties != 0 }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isSpace reports whether r is white space as the methodology defines it. These are the characters of
// unicode.IsSpace.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || '\t' <= r && r <= '\r'
	case r < 0x1680:
		return r == 0x85 || r == 0xa0
	}
	return r == 0x1680 || 0x2000 <= r && r <= 0x200a || r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f ||
		r == 0x3000
}

// isIgnorable reports whether r is invisible: it is never emitted, and dropped from names.
func isIgnorable(r rune) bool {
	switch {
	case r < 0x200b:
		return r == 0xad || r == 0x34f || r == 0x61c || r == 0x180e
	case r < 0xfe00:
		return r <= 0x200f || 0x202a <= r && r <= 0x202e || 0x2060 <= r && r <= 0x2064 || 0x2066 <= r && r <= 0x2069
	}
	return r <= 0xfe0f || r == 0xfeff || 0xe0100 <= r && r <= 0xe01ef
}

// isLetter reports whether r is of category L or Nl.
func isLetter(r rune) bool {
	switch {
	case r < 128:
		return is(r, asciiLetter)
	case 0x4e00 <= r && r <= 0x9fff, 0xac00 <= r && r <= 0xd7a3: // Han, Hangul: no search in a table
		return true
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
}

// isMark reports whether r is of category Mn or Mc.
func isMark(r rune) bool {
	return r >= 0x300 && (unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r))
}

func isDigit(r rune) bool { return is(r, asciiDigit) || r >= 128 && unicode.IsDigit(r) }

// isCapital reports whether r is of category Lu or Lt.
func isCapital(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) }

// isLower reports whether r is of category Ll.
func isLower(r rune) bool { return unicode.Is(unicode.Ll, r) }

// isWordCharacter reports whether r may be part of a token of a name.
func isWordCharacter(r rune) bool {
	return is(r, asciiLetter|asciiDigit) || r == '+' || r == '&' || r == '#' || r == '@' ||
		r >= 128 && (isLetter(r) || isMark(r) || isDigit(r))
}

// classOf returns the class of a character that is not a mark. A mark has the class of its base.
func classOf(r rune) class {
	switch {
	case r < 128:
		if is(r, asciiLetter|asciiDigit) {
			return word
		}
		return other
	case !isLetter(r):
		if isDigit(r) {
			return word
		}
		return other
	}
	return letterClass(r)
}

// letterClass returns the class of a letter. The ranges are the blocks of the scripts that M7 names.
func letterClass(r rune) class {
	switch {
	case r < 0xe00:
		return word
	case r <= 0xeff, 0x1000 <= r && r <= 0x109f, 0x1780 <= r && r <= 0x17ff, 0x3005 <= r && r <= 0x309f,
		0x3100 <= r && r <= 0x312f, 0x31a0 <= r && r <= 0x31bf, 0x3400 <= r && r <= 0x4dbf, 0x4e00 <= r && r <= 0x9fff,
		0xa9e0 <= r && r <= 0xa9ff, 0xaa60 <= r && r <= 0xaa7f, 0xf900 <= r && r <= 0xfaff,
		0x1b000 <= r && r <= 0x1b16f, 0x20000 <= r && r <= 0x3ffff:
		return free
	case 0x30a0 <= r && r <= 0x30ff, 0x31f0 <= r && r <= 0x31ff:
		return katakana
	case 0x1100 <= r && r <= 0x11ff, 0x3130 <= r && r <= 0x318f, 0xa960 <= r && r <= 0xa97f, 0xac00 <= r && r <= 0xd7ff:
		return hangul
	}
	return word
}

// lowerASCII returns c with A-Z as a-z.
func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// upperASCII returns c with a-z as A-Z.
func upperASCII(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}
