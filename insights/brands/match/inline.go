package match

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A unit is visible prose between two barriers: visible[start:end]. No name, phrase, sentence or address crosses a
// barrier.
type unit struct {
	start, end           int32
	labelStart, labelEnd int32 // its link labels, in labels
	hostStart, hostEnd   int32 // its bare hosts, in hosts
	mayHaveAddress       bool
	linked               bool // it has a link or an autolink
	address              bool // it has an address (M9)
}

// A span is a range of visible characters.
type span struct{ start, end int32 }

// gone stands for a visible character that became part of the space of a link.
const gone rune = -1

// An inline reads the content of blocks (M2) and appends what is visible to visible.
type inline struct {
	visible []rune    // of all units, one after the other; see also [gone]
	origins []segment // from visible to src
	units   []unit
	labels  []span // the link labels of all units, in visible
	last    uint8  // addressBytes of the last visible character of the unit
	signs   uint8  // not 0: the unit may have an address, see addressBytes

	brackets []bracket // that are open
	markEnd  int       // the next 】 in the block, or its end
	runsOf   int       // start of the block that lastRun is of
	lastRun  map[int]int
}

// A bracket is a [ that may open the text of a link.
type bracket struct {
	at    int32 // index in visible
	image bool
}

// readInline reads all blocks from the beginning.
func (s *scratch) readInline() {
	s.beginInline()
	for _, b := range s.blocks {
		s.readUnitsOf(b)
	}
}

// hasProse reports whether there is a visible letter or digit. It reads no further than to the block that has the
// first.
func (s *scratch) hasProse() bool {
	s.beginInline()
	for _, b := range s.blocks {
		n := len(s.visible)
		if s.readUnitsOf(b); hasWord(s.visible[n:]) {
			return true
		}
	}
	return false
}

// beginInline forgets what was read before: hasProse may have read some of the blocks already.
func (s *scratch) beginInline() {
	// There are hardly ever more visible characters than bytes in src.
	s.visible, s.origins = slices.Grow(s.visible[:0], len(s.src)), s.origins[:0]
	// No block begins at -1, so the first run of backticks makes readCode look for runs.
	s.units, s.labels, s.runsOf, s.markEnd = s.units[:0], s.labels[:0], -1, 0
}

// readUnitsOf reads the units of a block, which is one unless it has barriers.
func (s *scratch) readUnitsOf(b block) {
	s.openUnit()
	s.readBlock(int(b.start), int(b.end))
	s.closeUnit()
}

// openUnit begins a unit at the end of visible. It forgets open brackets, which are literal at a barrier.
func (s *scratch) openUnit() {
	n, labels := int32(len(s.visible)), int32(len(s.labels))
	s.units = append(s.units, unit{start: n, end: n, labelStart: labels, labelEnd: labels})
	s.last, s.signs = 0, 0
	s.brackets = s.brackets[:0]
}

// closeUnit ends the unit that openUnit began.
func (s *scratch) closeUnit() {
	u := s.unit()
	u.end, u.labelEnd = int32(len(s.visible)), int32(len(s.labels))
	u.mayHaveAddress = s.signs != 0
}

// unit returns the unit that is being read. The pointer is valid until the next openUnit.
func (s *scratch) unit() *unit { return &s.units[len(s.units)-1] }

// emit makes r visible. at is the index from which r comes.
func (s *scratch) emit(r rune, at int) {
	s.origins = append(s.origins, segment{int32(len(s.visible)), int32(at)})
	s.visible = append(s.visible, r)
	// A character beyond ASCII may follow a dot in a host, but no sign of an address begins with it.
	c := afterDot
	if r < utf8.RuneSelf {
		c = addressBytes[r]
	}
	s.signs |= s.last & (c >> afterShift)
	s.last = c
}

// emitPlain makes visible the ASCII characters at the start of src that have no meaning, and returns their number.
func (s *scratch) emitPlain(src []byte, at int) int {
	n := len(s.visible)
	// The loop writes into the room for all of src, and the slice is extended once, after it.
	visible := slices.Grow(s.visible, len(src))[n:][:len(src)]
	length, last, signs := len(src), s.last, s.signs
	for i, b := range src {
		c := plainBytes[b]
		if c == 0 {
			length = i
			break
		}
		visible[i] = rune(b)
		signs |= last & (c >> afterShift)
		last = c
	}
	// One segment is enough: the characters are consecutive in src, too.
	if length > 0 {
		s.visible, s.origins = s.visible[:n+length], append(s.origins, segment{int32(n), int32(at)})
		s.last, s.signs = last, signs
	}
	return length
}

// plainBytes are addressBytes for the ASCII characters that mean nothing to the inline syntax, else 0.
var plainBytes = func() (table [256]uint8) {
	for c := range rune(utf8.RuneSelf) {
		if !is(c, asciiInline) {
			table[c] = addressBytes[c]
		}
	}
	return table
}()

// readBlock reads src[lo:hi].
func (s *scratch) readBlock(lo, hi int) {
	// Nothing after the block is read: an unclosed mark ends with it.
	src := s.src[:hi]
	for i := lo; i < hi; {
		if n := s.emitPlain(src[i:], i); n > 0 {
			i += n
			continue
		}
		switch c := src[i]; c {
		case '\\':
			i = s.readEscape(i, hi)
		case '`':
			i = s.readCode(lo, i, hi)
		case '<':
			i = s.readAngle(i, hi)
		case '&':
			i = s.readReference(i, hi)
		// Whether it opens a link is known at the closing bracket. Until then it is text.
		case '[':
			// The ! must have been emitted from the byte before: an escaped one comes from its backslash.
			image := i > lo && src[i-1] == '!' && len(s.visible) > 0 && s.origin(int32(len(s.visible)-1)) == int32(i-1)
			s.brackets = append(s.brackets, bracket{int32(len(s.visible)), image})
			s.emit('[', i)
			i++
		case ']':
			i = s.closeBracket(i, hi)
		// Emphasis has no width, whether or not it is closed.
		case '*':
			i++
		// Two of them mark struck text, which stays visible.
		case '~':
			n := runLength(src, i)
			if n != 2 {
				s.emitRun('~', i, n)
			}
			i += n
		// Inside a word, as in snake_case, the run is part of it.
		case '_':
			n := runLength(src, i)
			before, _ := utf8.DecodeLastRune(src[lo:i])
			after, _ := utf8.DecodeRune(src[i+n:])
			if i > lo && i+n < hi && isLetterOrDigit(before) && isLetterOrDigit(after) {
				s.emitRun('_', i, n)
			}
			i += n
		case '\n':
			s.emit(' ', i)
			i++
		default:
			r, size := utf8.DecodeRune(src[i:])
			if r == '【' {
				if end := s.sourceMark(src, i+size); end > i {
					s.emit(' ', i)
					i = end
					continue
				}
			}
			if !isIgnorable(r) {
				s.emit(r, i)
			}
			i += size
		}
	}
}

func isLetterOrDigit(r rune) bool { return isLetter(r) || isDigit(r) }

// emitRun emits n characters r, which are ASCII and begin at src[at].
func (s *scratch) emitRun(r rune, at, n int) {
	for k := range n {
		s.emit(r, at+k)
	}
}

// readEscape reads a backslash: punctuation after it means only itself.
func (s *scratch) readEscape(i, hi int) int {
	if i+1 < hi {
		if c := s.src[i+1]; c == '\n' {
			s.emit(' ', i)
			return i + 2
		} else if is(rune(c), asciiPunct) {
			s.emit(rune(c), i)
			return i + 2
		}
	}
	s.emit('\\', i)
	return i + 1
}

// readCode reads a run of backticks. With the next run of the same length in the block it encloses code, in which
// nothing means anything.
func (s *scratch) readCode(lo, i, hi int) int {
	src := s.src[:hi]
	n := runLength(src, i)
	// This is the first run of the block.
	if s.runsOf != lo {
		s.runsOf = lo
		s.findRuns(i, hi)
	}
	// No run of this length follows, so this one is text.
	if s.lastRun[n] <= i {
		s.emitRun('`', i, n)
		return i + n
	}
	s.emit(' ', i)
	for k := i + n; k < hi; {
		switch c := src[k]; {
		// Runs of another length are part of the code.
		case c == '`':
			length := runLength(src, k)
			if length == n {
				s.emit(' ', k)
				return k + n
			}
			s.emitRun('`', k, length)
			k += length
		case c == '\n':
			s.emit(' ', k)
			k++
		default:
			r, size := utf8.DecodeRune(src[k:])
			if !isIgnorable(r) {
				s.emit(r, k)
			}
			k += size
		}
	}
	return hi // not reached: lastRun has a run after i
}

// findRuns notes the last run of backticks of each length in src[i:hi], so that a run without a partner costs no
// search.
func (s *scratch) findRuns(i, hi int) {
	clear(s.lastRun)
	for src := s.src[:hi]; i < hi; {
		if src[i] != '`' {
			i++
			continue
		}
		n := runLength(src, i)
		s.lastRun[n] = i
		i += n
	}
}

// maxSourceMark bounds a mark such as 【1†source】, in characters between the brackets.
const maxSourceMark = 100

// sourceMark returns the end of a mark whose first character is before src[i], or 0.
func (s *scratch) sourceMark(src []byte, i int) int {
	// The next 】 is found once for all 【 before it, which keeps the time linear.
	if s.markEnd <= i {
		s.markEnd = len(src)
		if n := bytes.Index(src[i:], []byte("】")); n >= 0 {
			s.markEnd = i + n
		}
	}
	if s.markEnd == len(src) || s.markEnd-i > maxSourceMark*utf8.UTFMax {
		return 0
	}
	content := src[i:s.markEnd]
	if bytes.IndexByte(content, '\n') >= 0 || !bytes.Contains(content, []byte("†")) ||
		utf8.RuneCount(content) > maxSourceMark {
		return 0
	}
	return s.markEnd + len("】")
}

// closeBracket reads a ]: the end of a link or an image, the end of a footnote mark, or text.
func (s *scratch) closeBracket(i, hi int) int {
	if len(s.brackets) == 0 {
		s.emit(']', i)
		return i + 1
	}
	open := s.brackets[len(s.brackets)-1]
	s.brackets = s.brackets[:len(s.brackets)-1]
	end := destinationEnd(s.src[:hi], i+1)
	// A reference: the label of a definition follows, as in [text][label].
	if end == 0 && len(s.defined) > 0 && i+1 < hi && s.src[i+1] == '[' {
		// If there is no bracket, IndexAny returns -1, and the text is "[", which is no label.
		length := bytes.IndexAny(s.src[i+2:hi], "[]") + len("[]")
		if label, _, ok := readLabel(string(s.src[i+1 : i+1+length])); ok && s.isDefined(label) {
			end = i + 1 + length
		}
	}
	switch {
	// A footnote mark, such as [^1], is not shown.
	case end == 0 && s.isCaret(open.at+1):
		s.truncate(open.at)
		s.emit(' ', i)
		return i + 1
	case end == 0:
		s.emit(']', i)
		return i + 1
	case open.image:
		// An image shows nothing, not even its description. The ! is before the bracket.
		s.truncate(open.at - 1)
	default:
		// A link shows its label. Links do not nest, so brackets that are still open are literal.
		s.visible[open.at] = ' '
		s.labels = append(s.labels, span{open.at + 1, int32(len(s.visible))})
		s.unit().linked = true
		s.brackets = s.brackets[:0]
	}
	s.emit(' ', i)
	return end
}

// isCaret reports whether visible character i is a ^ that was not escaped: a bracket before it opens a footnote mark.
func (s *scratch) isCaret(i int32) bool {
	return int(i) < len(s.visible) && s.visible[i] == '^' && s.src[s.origin(i)] == '^'
}

// truncate drops what was emitted from n on.
func (s *scratch) truncate(n int32) {
	s.visible = s.visible[:n]
	for len(s.origins) > 0 && s.origins[len(s.origins)-1].to >= n {
		s.origins = s.origins[:len(s.origins)-1]
	}
}

// origin returns the index in src of what visible character i comes from.
func (s *scratch) origin(i int32) int32 { return origin(s.origins, i) }
