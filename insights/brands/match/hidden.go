package match

import "strings"

// A segment maps a range of a text that consists of parts of another text. The range from index to up to the next
// segment is a copy of the other text from index from on.
type segment struct{ to, from int32 }

// origin returns the index in the other text of index i. No segments: the texts are the same.
func origin(segments []segment, i int32) int32 {
	lo, hi := 0, len(segments)
	for lo < hi {
		if mid := (lo + hi) / 2; segments[mid].to <= i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return i
	}
	return segments[lo-1].from + i - segments[lo-1].to
}

// hide returns text without its hidden spans (M1): comments, the reasoning of a model, scripts, styles,
// preformatted HTML, and the marks by which engines refer to their sources. It fills s.hidden if something was
// removed.
func (s *scratch) hide(text string) string {
	s.hidden = s.hidden[:0]
	// Without either, nothing is hidden. EE 88 are the first two bytes of the marks E200 to E20F in UTF-8.
	if !strings.Contains(text, "\xee\x88") && strings.IndexByte(text, '<') < 0 {
		return text
	}
	h := hider{text: text, hidden: s.hidden, lastRun: s.lastRun, runsTo: -1}
	h.scan()
	s.hidden = h.hidden
	if len(h.hidden) == 0 {
		return text
	}
	return string(h.out)
}

// A hider removes the hidden spans of one text. It copies what is left to out in long parts: text[copied:i] is still
// to be copied when the scan is at i.
type hider struct {
	text   string
	out    []byte    // what is left so far
	hidden []segment // from out to text
	copied int       // up to here text is copied or removed

	runsTo  int         // end of the line that lastRun is of
	lastRun map[int]int // the last run of backticks of each length
}

// scan reads the text once. It skips code, in which nothing is hidden, and punctuation after a backslash, which means
// nothing.
func (h *hider) scan() {
	t := h.text
	lineStart := true
	for i := 0; i < len(t); {
		if lineStart {
			lineStart = false
			if end := fencedBlock(t, i); end > i {
				i, lineStart = end, true
				continue
			}
		}
		switch c := t[i]; c {
		case '\n':
			i++
			lineStart = true
		case '\r':
			i++
			lineStart = i == len(t) || t[i] != '\n'
		case '\\':
			i++
			if i < len(t) && is(rune(t[i]), asciiPunct) {
				i++
			}
		case '`':
			i = h.code(i)
		case '<':
			i = h.tag(i)
		// Other characters begin with this byte, too. Their further bytes match no case here.
		case 0xee:
			i = h.mark(i)
		default:
			i++
		}
	}
	if len(h.hidden) > 0 {
		h.out = append(h.out, t[h.copied:]...)
	}
}

// cut replaces text[from:to]. It returns to, where the scan goes on.
func (h *hider) cut(from, to int, replacement string) int {
	if len(h.hidden) == 0 {
		h.hidden = append(h.hidden, segment{})
	}
	h.out = append(h.out, h.text[h.copied:from]...)
	if replacement != "" {
		h.hidden = append(h.hidden, segment{int32(len(h.out)), int32(from)})
		h.out = append(h.out, replacement...)
	}
	h.hidden = append(h.hidden, segment{int32(len(h.out)), int32(to)})
	h.copied = to
	return to
}

// blankLine separates what precedes a hidden span from what follows it, so that no name crosses the place.
const blankLine = "\n\n"

// code returns the end of a run of backticks, or of the code that it opens on its line.
func (h *hider) code(i int) int {
	t := h.text
	n := runLength(t, i)
	// The first run of a line notes the last run of each length there, so a line of many runs without partners takes
	// linear time.
	if i >= h.runsTo {
		h.runsTo = i + lineLength(t[i:])
		clear(h.lastRun)
		for k := i; k < h.runsTo; {
			next := strings.IndexByte(t[k:h.runsTo], '`')
			if next < 0 {
				break
			}
			k += next
			length := runLength(t, k)
			h.lastRun[length] = k
			k += length
		}
	}
	// No run of this length follows on the line, so this one is text. A length without an entry gives 0.
	if h.lastRun[n] <= i {
		return i + n
	}
	// A run of this length follows on the line, so the loop ends and IndexByte never returns -1.
	for k := i + n; ; {
		k += strings.IndexByte(t[k:], '`')
		length := runLength(t, k)
		k += length
		if length == n {
			return k
		}
	}
}

// runLength returns how often t[i] is repeated from i on.
func runLength[T string | []byte](t T, i int) int {
	n := 1
	for i+n < len(t) && t[i+n] == t[i] {
		n++
	}
	return n
}

// lineLength returns the length of the line that t begins with, without its end.
func lineLength(t string) int {
	if i := strings.IndexAny(t, "\n\r"); i >= 0 {
		return i
	}
	return len(t)
}

// tag returns the end of what begins with the < at i: hidden, or only the <.
func (h *hider) tag(i int) int {
	t := h.text
	if strings.HasPrefix(t[i:], "<!--") {
		end := len(t)
		if length := strings.Index(t[i+4:], "-->"); length >= 0 {
			end = i + 4 + length + 3
		}
		if strings.ContainsAny(t[i:end], "\n\r") {
			return h.cut(i, end, blankLine)
		}
		return h.cut(i, end, "")
	}
	// Only a closing tag of the same name ends the reasoning, whatever is in it.
	if name, end := reasoningTag(t, i+1); name != "" {
		for {
			next := strings.Index(t[end:], "</")
			if next < 0 {
				return h.cut(i, len(t), blankLine)
			}
			end += next + 2
			if closing, after := reasoningTag(t, end); closing == name {
				return h.cut(i, after, blankLine)
			}
		}
	}
	if strings.HasPrefix(t[i:], "</") {
		if name, end := reasoningTag(t, i+2); name != "" {
			// All before the tag is reasoning whose opening tag is missing. What was copied is dropped, too.
			h.out, h.copied = h.out[:0], end
			h.hidden = append(h.hidden[:0], segment{0, int32(end)})
			return end
		}
		return i + 1
	}
	name, end := knownName(t, i+1, "script", "style", "pre")
	// A longer name, such as presentation, is another tag.
	if name == "" || end == len(t) || t[end] != '/' && t[end] != '>' && spaceLength(t[end:]) == 0 {
		return i + 1
	}
	for {
		next := strings.Index(t[end:], "</")
		if next < 0 {
			return h.cut(i, len(t), blankLine)
		}
		end += next + 2
		if closing, after := knownName(t, end, name); closing != "" {
			if after += spaceLength(t[after:]); after < len(t) && t[after] == '>' {
				return h.cut(i, after+1, blankLine)
			}
		}
	}
}

// reasoningTag returns the name of a tag around the reasoning of a model, whose name begins at i, and the index
// after its >.
func reasoningTag(t string, i int) (name string, end int) {
	name, end = knownName(t, i, "thinking", "think", "reasoning", "thought", "scratchpad")
	if name == "" {
		return "", 0
	}
	if end += spaceLength(t[end:]); end == len(t) || t[end] != '>' {
		return "", 0
	}
	return name, end + 1
}

// knownName returns the one of names that is at i, in any case, and its end. A name that begins with another comes
// before it.
func knownName(t string, i int, names ...string) (name string, end int) {
	for _, name := range names {
		if end := i + len(name); end <= len(t) && equalFold(t[i:end], name) {
			return name, end
		}
	}
	return "", 0
}

// equalFold reports whether s is lower without regard to ASCII case.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if lowerASCII(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

// spaceLength returns the length of the white space at the start of t.
func spaceLength(t string) int {
	for i, r := range t {
		if !isSpace(r) {
			return i
		}
	}
	return len(t)
}

// mark returns the end of the character at i, which may be one of the private characters by which an engine marks
// citations: E200 opens a mark, E201 closes it, E202 to E20F separate its parts.
func (h *hider) mark(i int) int {
	t := h.text
	if i+3 > len(t) || t[i+1] != 0x88 || t[i+2] < 0x80 || t[i+2] > 0x8f {
		return i + 1
	}
	// E201 to E20F outside of a mark: only the character itself is removed.
	if t[i+2] != 0x80 {
		return h.cut(i, i+3, "")
	}
	// If its line does not close the mark, only its first character becomes a space. Another E200 ends the search, so
	// no part of the text is searched twice.
	for k := i + 3; k < len(t); k++ {
		switch c := t[k]; {
		case c == '\n' || c == '\r':
			return h.cut(i, i+3, " ")
		case c == 0xee && strings.HasPrefix(t[k:], "\ue200"):
			return h.cut(i, i+3, " ")
		case c == 0xee && strings.HasPrefix(t[k:], "\ue201"):
			return h.cut(i, k+3, " ")
		}
	}
	return h.cut(i, i+3, " ")
}
