package match

import "strings"

// A block is a paragraph, a heading or a cell of a table: src[start:end], its lines joined by soft breaks, which
// are line feeds.
type block struct{ start, end int32 }

// A lineKind is what readBlocks remembers about the previous line.
type lineKind uint8

const (
	barrierLine lineKind = iota // separates units: a rule, a heading, a definition and the like
	textLine
	rowLine // of a table
)

// readBlocks splits what M1 left into blocks and collects the labels that definitions define (M2). It follows
// CommonMark in what a reader sees, line by line: no line is code because of its indentation.
func (s *scratch) readBlocks(text string) {
	s.src, s.lines, s.blocks = s.src[:0], s.lines[:0], s.blocks[:0]
	clear(s.defined)
	// What the previous line was decides whether a line continues its block.
	before, quotesBefore := barrierLine, 0
	for pos := 0; pos < len(text); {
		end, next := lineEnd(text, pos)
		p := readPrefix(text[pos:end])
		start := pos + p.length
		rest := trimBlanks(text[start:end])
		kind := barrierLine
		fence, fenced := openingFence(rest)
		label, definition := "", false
		if rest != "" && rest[0] == '[' {
			label, definition = readDefinition(rest)
		}
		// The cases are in the order of precedence. A case that sets no kind makes the line a barrier.
		switch {
		case rest == "" || p.rule:
		case fenced:
			next = fenceEnd(text, next, p.quotes, fence)
		case definition:
			if label[0] != '^' {
				s.define(label)
			}
		// The next line is read only if nothing else makes this one a row.
		case rest[0] == '|' || strings.IndexByte(rest, '|') >= 0 &&
			(before == rowLine || isDelimiterRow(rest) || followedByDelimiterRow(text, next)):
			kind = rowLine
			s.addCells(rest, start)
		// The kind stays barrierLine: text on the next line does not continue a heading.
		case headingLength(rest) > 0:
			n := headingLength(rest)
			s.addBlock(rest[n:], start+n)
		// A soft break: the line continues the paragraph before it. readBlock shows the line feed as a space.
		case before == textLine && quotesBefore == p.quotes && !p.marker:
			kind = textLine
			s.src = append(s.src, '\n')
			s.addLine(rest, start)
			s.blocks[len(s.blocks)-1].end = int32(len(s.src))
		default:
			kind = textLine
			s.addBlock(rest, start)
		}
		before, quotesBefore, pos = kind, p.quotes, next
	}
}

// addLine appends a part of a line to src. at is its index in the text that M1 left.
func (s *scratch) addLine(content string, at int) {
	s.lines = append(s.lines, segment{int32(len(s.src)), int32(at)})
	s.src = append(s.src, content...)
}

// addBlock adds a block that begins with content. Empty content makes no block.
func (s *scratch) addBlock(content string, at int) {
	if content == "" {
		return
	}
	start := int32(len(s.src))
	s.addLine(content, at)
	s.blocks = append(s.blocks, block{start, int32(len(s.src))})
}

// addCells adds a block for each cell of a row. A cell ends at each | that no backslash precedes, even in code.
func (s *scratch) addCells(row string, at int) {
	start := 0
	for i := range len(row) {
		if row[i] == '|' && (i == 0 || row[i-1] != '\\') {
			s.addBlock(row[start:i], at+start)
			start = i + 1
		}
	}
	s.addBlock(row[start:], at+start)
}

// lineEnd returns the end of the line at pos and the start of the next.
func lineEnd(text string, pos int) (end, next int) {
	// IndexByte is much faster than a loop. It searches a few bytes at a time, because a text may have only one kind
	// of line end.
	for end = pos; end < len(text); {
		part := text[end:min(end+128, len(text))]
		found := strings.IndexByte(part, '\n')
		if found >= 0 {
			part = part[:found]
		}
		// The first CR or LF ends the line.
		if at := strings.IndexByte(part, '\r'); at >= 0 {
			part, found = part[:at], at
		}
		if end += len(part); found >= 0 {
			break
		}
	}
	switch {
	case end == len(text):
		return end, end
	case text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n':
		return end, end + 2
	}
	return end, end + 1
}

// A prefix is what a line has before its content: quote and list markers.
type prefix struct {
	length int  // in bytes, with the blanks around markers
	quotes int  // number of >
	marker bool // whether there is a list marker
	rule   bool // what remains is a rule or the underline of a heading
}

// readPrefix reads the prefix of a line in a loop, because quotes and lists nest in any order: "> - > 1. text".
func readPrefix(line string) (p prefix) {
	// Without mixed, a line such as "- - - - x" would be searched to its end after each of its markers.
	var mixed int // what begins before this index is not a rule
	for {
		for p.length < len(line) && isBlank(line[p.length]) {
			p.length++
		}
		i := p.length
		if i == len(line) {
			return p
		}
		// A rule comes first: "- - -" is not three list markers.
		if i >= mixed {
			if p.rule, mixed = isRule(line, i); p.rule {
				return p
			}
		}
		if line[i] == '>' {
			p.quotes++
			p.length++
			continue
		}
		n := markerLength(line[i:])
		if n == 0 {
			return p
		}
		p.marker = true
		p.length += n
	}
}

// isRule reports whether line[i:] consists of blanks and three or more of one of - * _ =. mixed is the index of the
// character that prevents it, or 0.
func isRule(line string, i int) (rule bool, mixed int) {
	c, n := line[i], 0
	if c != '-' && c != '*' && c != '_' && c != '=' {
		return false, 0
	}
	for ; i < len(line); i++ {
		if line[i] == c {
			n++
		} else if !isBlank(line[i]) {
			return false, i
		}
	}
	return n >= 3, 0
}

// markerLength returns the length of the list marker that line begins with, or 0.
func markerLength(line string) int {
	n := 0
	switch c := line[0]; {
	case c == '-' || c == '+' || c == '*':
		n = 1
	case '0' <= c && c <= '9':
		for n < len(line) && '0' <= line[n] && line[n] <= '9' {
			n++
		}
		// More than nine digits make a number, not a marker, as in CommonMark.
		if n > 9 || n == len(line) || line[n] != '.' && line[n] != ')' {
			return 0
		}
		n++
	default:
		return 0
	}
	// "-5" and "3.14" are text.
	if n < len(line) && !isBlank(line[n]) {
		return 0
	}
	return n
}

// trimBlanks removes blanks at the end only: readPrefix has skipped the blanks at the start.
func trimBlanks(s string) string { return strings.TrimRight(s, " \t") }

// A fence opens and closes a block of code.
type fence struct {
	c      byte // ` or ~
	length int
}

// openingFence reads the content of a line as the opening of a fenced block, with an info string or not.
func openingFence(content string) (fence, bool) {
	if len(content) < 3 || content[0] != '`' && content[0] != '~' {
		return fence{}, false
	}
	f := fence{content[0], runLength(content, 0)}
	// A backtick after the fence makes the line inline code instead.
	return f, f.length >= 3 && (f.c == '~' || strings.IndexByte(content[f.length:], '`') < 0)
}

// fencedBlock returns the end of the fenced block that opens on the line at pos, or 0. It is for hide, which copies
// fenced blocks unchanged.
func fencedBlock(text string, pos int) int {
	end, next := lineEnd(text, pos)
	// Most lines have no fence character, so their prefix is not read.
	if strings.IndexByte(text[pos:end], '`') < 0 && strings.IndexByte(text[pos:end], '~') < 0 {
		return 0
	}
	p := readPrefix(text[pos:end])
	f, ok := openingFence(trimBlanks(text[pos+p.length : end]))
	if !ok || p.rule {
		return 0
	}
	return fenceEnd(text, next, p.quotes, f)
}

// fenceEnd returns the end of a fenced block whose second line is at pos. A line with fewer quote markers than the
// first line ends it, and belongs to what follows.
func fenceEnd(text string, pos, quotes int, f fence) int {
	for pos < len(text) {
		end, next := lineEnd(text, pos)
		line := text[pos:end]
		// Only as many quote markers as the first line has are removed: a further > is content.
		for range quotes {
			line = strings.TrimLeft(line, " \t")
			if line == "" || line[0] != '>' {
				return pos
			}
			line = line[1:]
		}
		line = strings.Trim(line, " \t")
		if len(line) >= f.length && line[0] == f.c && runLength(line, 0) == len(line) {
			return next
		}
		pos = next
	}
	return pos
}

// isDelimiterRow reports whether a line is the one below the head of a table.
func isDelimiterRow(content string) bool {
	bar, dash := false, false
	for i := range len(content) {
		switch c := content[i]; {
		case c == '|':
			bar = true
		case c == '-':
			dash = true
		case c != ':' && !isBlank(c):
			return false
		}
	}
	return bar && dash
}

// followedByDelimiterRow reports whether the line at next is a delimiter row, which makes the line before it the head
// of a table.
func followedByDelimiterRow(text string, next int) bool {
	if next >= len(text) {
		return false
	}
	end, _ := lineEnd(text, next)
	p := readPrefix(text[next:end])
	return !p.rule && isDelimiterRow(text[next+p.length:end])
}

// headingLength returns the number of # that a heading begins with; 0: content is not a heading.
func headingLength(content string) int {
	if content[0] != '#' {
		return 0
	}
	if n := runLength(content, 0); n <= 6 && (n == len(content) || isBlank(content[n])) {
		return n
	}
	return 0
}
