package match

import (
	"slices"
	"strings"
	"unicode"
)

// NormalForm returns the normal form of a text that is not Markdown, such as a question: without case, accents and
// differences of white space that M4 ignores, trimmed. Two own questions with one normal form are equal.
func NormalForm(text string) string {
	n := normalizer{ascii: &asciiNormal}
	for _, r := range text {
		if !isIgnorable(r) {
			n.add(r, 0)
		}
	}
	return strings.TrimSuffix(plain(n.out), " ")
}

// plain returns the characters as a text. A placeholder becomes U+FFFD.
func plain(chars []char) string {
	var b strings.Builder
	for _, c := range chars {
		b.WriteRune(c.r)
	}
	return b.String()
}

// A normalizer appends the normal form of characters to out.
type normalizer struct {
	out   []char
	from  []segment  // from out to the characters that were added
	ascii *[128]char // asciiNormal, or a Matcher's own table
	base  char       // the last character that is not a mark, whether or not it was dropped
}

// asciiNormal is what the normal form of an ASCII character is; a space for white space.
var asciiNormal = func() (table [128]char) {
	for c := range rune(128) {
		r := c
		switch {
		case isSpace(c):
			r = ' '
		case c == '`':
			r = '\''
		case 'A' <= c && c <= 'Z':
			r = c + 'a' - 'A'
		}
		table[c] = char{r: r, traits: traitsOf(classOf(r))}
		if 'A' <= c && c <= 'Z' {
			table[c].traits |= fromCapital
		}
	}
	return table
}()

// addAll appends the normal form of visible characters, the first of which has the index at.
func (n *normalizer) addAll(visible []rune, at int32) {
	for len(visible) > 0 {
		read := n.addASCII(visible, at)
		if read < len(visible) {
			// The characters of a link after its first one have no normal form. The first one is a space.
			if r := visible[read]; r != gone {
				n.add(r, at+int32(read))
			}
			read++
		}
		visible, at = visible[read:], at+int32(read)
	}
}

// addASCII appends the normal form of the ASCII characters that visible begins with, up to a space that is dropped, and
// returns their number. A branch that depends on the character would be mispredicted once a word, which would take most
// of the time.
func (n *normalizer) addASCII(visible []rune, at int32) (read int) {
	// At the start of a unit a space is dropped, as it is after a space.
	start, last := len(n.out), ' '
	if start > 0 {
		last = n.out[start-1].r
	}
	n.out = slices.Grow(n.out, len(visible))
	room := n.out[start : start+len(visible)]
	read = len(visible)
	for i, r := range visible {
		if uint32(r) >= 128 {
			read = i
			break
		}
		c := &n.ascii[r]
		// Of two spaces, add drops the second. The few other pairs with this sum, of control characters or hosts, are
		// added.
		if c.r+last == ' '+' ' {
			read = i
			break
		}
		last = c.r
		room[i] = *c
	}
	if read > 0 {
		n.comesFrom(at)
		n.base = room[read-1]
	}
	n.out = n.out[:start+read]
	return read
}

// add appends the normal form of r. At is the index of r among the visible characters.
func (n *normalizer) add(r rune, at int32) {
	c := char{}
	switch {
	case uint32(r) < 128:
		c = n.ascii[r]
	case r < latinEnd:
		c = latinNormal[r-128]
	case punctuationStart <= r && r < punctuationEnd:
		c = punctuationNormal[r-punctuationStart]
	}
	// r is in no table, or its normal form is not a single character.
	if c.r == 0 {
		n.addAny(r, at)
		return
	}
	if c.r == ' ' && (len(n.out) == 0 || n.out[len(n.out)-1].r == ' ') {
		return
	}
	n.base = c
	n.append(c, at)
}

// append appends a character of the normal form, whose traits it completes.
func (n *normalizer) append(c char, at int32) {
	n.comesFrom(at)
	if uint32(c.r) < 128 {
		c.traits |= n.ascii[c.r].traits & mayBegin
	} else {
		// Characters beyond ASCII have no table of what may begin with them.
		c.traits |= mayBegin
	}
	n.out = append(n.out, c)
}

// comesFrom notes that the next character of out comes from the one with the index at, and those after it from those
// after that.
func (n *normalizer) comesFrom(at int32) {
	to := int32(len(n.out))
	if len(n.from) > 0 {
		// The last segment goes on: both indexes have advanced equally since it began.
		if last := n.from[len(n.from)-1]; last.from+to-last.to == at {
			return
		}
	}
	n.from = append(n.from, segment{to, at})
}

// Frequent characters that are not ASCII: Latin-1, Latin Extended-A, and quotes and dashes.
const (
	latinEnd         = 0x180
	punctuationStart = 0x2010
	punctuationEnd   = 0x2040
)

// latinNormal and punctuationNormal have the normal forms of one character, whatever precedes it; else 0.
var (
	latinNormal       = singleNormals(128, latinEnd)
	punctuationNormal = singleNormals(punctuationStart, punctuationEnd)
)

// singleNormals returns the normal form of each character in the range [from, to) if that is one character and no
// mark, and the zero char otherwise.
func singleNormals(from, to rune) []char {
	table := make([]char, to-from)
	for r := from; r < to; r++ {
		n := normalizer{out: []char{{r: 'x', traits: traitsOf(word)}}, ascii: &asciiNormal} // before which no space is dropped
		if n.addAny(r, 0); len(n.out) == 2 && !n.out[1].isMark() {
			table[r-from] = n.out[1]
		}
	}
	return table
}

// addAny appends the normal form of r by the rules.
func (n *normalizer) addAny(r rune, at int32) {
	// fold loses the case.
	capital := isCapital(r)
	if !becomesSpace(r) && hasDecomposition(r) {
		if s := decompose(r); s != "" {
			// All characters of the decomposition come from r.
			for _, d := range s {
				n.fold(d, at, capital)
			}
			return
		}
	}
	n.fold(r, at, capital)
}

// becomesSpace reports whether r is white space, a superscript or circled number or a sign of rights, all of which
// would otherwise become letters or digits of a name.
func becomesSpace(r rune) bool {
	switch {
	case r < 0x1680:
		return isSpace(r) || r == 0xa9 || r == 0xae || r == 0xb2 || r == 0xb3 || r == 0xb9
	case r < 0x2070:
		return isSpace(r)
	}
	return r <= 0x2079 && (r == 0x2070 || r >= 0x2074) || r == 0x2120 || r == 0x2122 ||
		0x2460 <= r && r <= 0x249b || 0x24ea <= r && r <= 0x24ff || r == 0x3000
}

// hasDecomposition reports whether r is in a range whose characters M4 decomposes.
func hasDecomposition(r rune) bool {
	switch {
	case r <= 0x24f:
		return r >= 0xaa && isLetter(r)
	case r <= 0x1fff:
		return (0x370 <= r && r <= 0x4ff || 0x1e00 <= r) && isLetter(r)
	case r <= 0x30ff:
		return 0x2071 <= r && r <= 0x209c || 0x2100 <= r && r <= 0x214f || 0x24b6 <= r && r <= 0x24e9 ||
			0x3041 <= r && isLetter(r)
	}
	return 0xfb00 <= r && r <= 0xfb06 || 0xff01 <= r && r <= 0xff9f || 0x1d400 <= r && r <= 0x1d7ff
}

// fold appends the folded form of a decomposed character. capital tells whether the character that r comes from is a
// capital.
func (n *normalizer) fold(r rune, at int32, capital bool) {
	if becomesSpace(r) {
		r = ' '
	} else {
		r = foldPunctuation(r)
		if r >= 'A' {
			r = unicode.ToLower(r)
		}
	}
	// Unicode has no decomposition of these letters.
	second := rune(0)
	switch r {
	case 'ß':
		r, second = 's', 's'
	case 'æ':
		r, second = 'a', 'e'
	case 'œ':
		r, second = 'o', 'e'
	case 'þ':
		r, second = 't', 'h'
	case 'ø':
		r = 'o'
	case 'đ', 'ð':
		r = 'd'
	case 'ł':
		r = 'l'
	case 'ħ':
		r = 'h'
	case 'ı':
		r = 'i'
	case 'ς':
		r = 'σ'
	}
	n.put(r, at, capital)
	if second != 0 {
		n.put(second, at, capital)
	}
}

// foldPunctuation maps apostrophes, hyphens, middle dots and slashes to one form each.
func foldPunctuation(r rune) rune {
	switch {
	case r == 0x60, r == 0xb4, r == 0x2b9, r == 0x2bb, r == 0x2bc, 0x2018 <= r && r <= 0x201b, r == 0x2032:
		return '\''
	case 0x2010 <= r && r <= 0x2015, r == 0x2212, r == 0xfe58, r == 0xfe63:
		return '-'
	case r == 0x387, r == 0x2027, r == 0x30fb:
		return middleDot
	case r == 0x2044, r == 0x2215:
		return '/'
	}
	return r
}

const middleDot = '·' // B7

// put appends a folded character, unless it is dropped or composes with the last one.
func (n *normalizer) put(r rune, at int32, capital bool) {
	if r == ' ' && (len(n.out) == 0 || n.out[len(n.out)-1].r == ' ') {
		return
	}
	if dropped(r) {
		if !isMark(r) { // a tatweel
			n.base = char{r: r, traits: traitsOf(classOf(r))}
		}
		return
	}
	c := char{r: r}
	if capital {
		c.traits = fromCapital
	}
	if isMark(r) {
		if droppedMark(r, n.base.r) {
			return
		}
		c.traits |= isAMark | n.base.traits&(classMask|inWord)
		n.append(c, at)
		return
	}
	if mayCompose(r) && n.compose(r) {
		return
	}
	c.traits |= traitsOf(classOf(r))
	n.base = c
	n.append(c, at)
}

// dropped reports whether r is an Arabic or Hebrew sign that is optional in writing.
func dropped(r rune) bool {
	if r < 0x591 || r > 0x670 {
		return false
	}
	return r == 0x640 || 0x64b <= r && r <= 0x652 || r == 0x670 || r <= 0x5bd || r == 0x5bf ||
		r == 0x5c1 || r == 0x5c2 || r == 0x5c4 || r == 0x5c5 || r == 0x5c7
}

// droppedMark reports whether a mark is an accent of its base, which is in normal form, rather than part of a letter.
func droppedMark(mark, base rune) bool {
	switch {
	case 0x41 <= base && base <= 0x2af, 0x370 <= base && base <= 0x3ff, 0x1d00 <= base && base <= 0x1dbf,
		0x1e00 <= base && base <= 0x1fff, 0x2c60 <= base && base <= 0x2c7f, 0xa720 <= base && base <= 0xa7ff,
		0xab30 <= base && base <= 0xab6f:
		return isLetter(base) && unicode.Is(unicode.Mn, mark)
	case base == 'е' && mark == 0x308:
		return true
	case mark == 0x300 || mark == 0x301:
		cyrillic := 0x400 <= base && base <= 0x52f || 0x1c80 <= base && base <= 0x1c8f || 0xa640 <= base && base <= 0xa69f
		return cyrillic && isLetter(base) && base != 'г' && base != 'к'
	}
	return false
}

// Hangul syllables and the conjoining letters that they are composed of [Unicode 15.0, 3.12].
const (
	hangulSyllables = 0xac00
	hangulLeads     = 0x1100
	hangulVowels    = 0x1161
	hangulFinals    = 0x11a7 // before the first
	leadCount       = 19
	vowelCount      = 21
	finalCount      = 28 // with none
)

// mayCompose reports whether r is a Hangul vowel or final consonant: nothing else composes with what precedes.
func mayCompose(r rune) bool { return hangulVowels <= r && r < hangulFinals+finalCount }

// compose joins a vowel to the initial consonant before it, or a final consonant to the syllable before it.
func (n *normalizer) compose(r rune) bool {
	if len(n.out) == 0 {
		return false
	}
	last := &n.out[len(n.out)-1]
	// Syllables are numbered by lead, then vowel, then final, so composing is arithmetic.
	lead, vowel, syllable, final := last.r-hangulLeads, r-hangulVowels, last.r-hangulSyllables, r-hangulFinals
	switch {
	case 0 <= lead && lead < leadCount && 0 <= vowel && vowel < vowelCount:
		// The char keeps the class and the origin of the first letter.
		last.r = hangulSyllables + (lead*vowelCount+vowel)*finalCount
	// A syllable without a final has a number that is a multiple of finalCount.
	case 0 <= syllable && syllable < leadCount*vowelCount*finalCount && syllable%finalCount == 0 &&
		0 < final && final < finalCount:
		last.r += final
	default:
		return false
	}
	// The syllable is the base of marks that follow.
	n.base.r = last.r
	return true
}
