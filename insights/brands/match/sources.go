package match

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of the heading of a list of sources, in visible characters.
const (
	maxSourcesHeading   = 200
	maxSourcesParagraph = 200 // up to the colon
)

// dropSources drops the list of sources at the end of the answer (M2), which repeats its citations: a heading
// after which there are only links, or a paragraph that begins with the heading and a colon. It returns the units
// that are left.
func (s *scratch) dropSources() []unit {
	seen := s.seen[:0] // indexes of units with a letter, a digit, or a link or an address
	for i := range s.units {
		if u := &s.units[i]; u.cites() || hasWord(s.visible[u.start:u.end]) {
			seen = append(seen, int32(i))
		}
	}
	s.seen = seen
	if len(seen) == 0 {
		return s.units
	}
	// The heading itself may be without a link, so the last unit that has none is a candidate, too.
	first := len(seen) - 1 // of the units after which all have a link or an address
	for first > 0 && s.units[seen[first]].cites() {
		first--
	}
	// The last unit is no heading: nothing would follow it.
	for _, i := range seen[first : len(seen)-1] {
		if u := &s.units[i]; u.end-u.start <= maxSourcesHeading && s.isSourcesHeading(u, u.end) {
			return s.units[:i]
		}
	}
	last := seen[len(seen)-1]
	if s.isSourcesParagraph(&s.units[last]) {
		return s.units[:last]
	}
	return s.units
}

// cites reports whether the unit has a link or an address.
func (u *unit) cites() bool { return u.linked || u.address }

// hasWord reports whether there is a letter or a digit.
func hasWord(v []rune) bool { return slices.ContainsFunc(v, isLetterOrDigit) }

// moreLetters reports whether there are more than n ASCII letters.
func moreLetters(visible []rune, n int) bool {
	for _, r := range visible {
		if is(r, asciiLetter) {
			n--
		}
		if n < 0 {
			return true
		}
	}
	return false
}

// longestHeading is the length of the longest of sourcesHeadings.
var longestHeading = func() (n int) {
	for heading := range sourcesHeadings {
		n = max(n, len(heading))
	}
	return n
}()

// isSourcesHeading reports whether the visible characters of u before end, without what is neither letter nor digit
// around them, are a heading such as "References".
func (s *scratch) isSourcesHeading(u *unit, end int32) bool {
	if u.hostStart == u.hostEnd && moreLetters(s.visible[u.start:end], longestHeading) {
		return false // without its normal form, where each of them is a character
	}
	// What is around the words, such as the marks of a list or a colon, does not matter.
	chars := s.normalize(u, end)
	for len(chars) > 0 && (chars[0].isHost() || !isLetterOrDigit(chars[0].r)) {
		chars = chars[1:]
	}
	for len(chars) > 0 && (chars[len(chars)-1].isHost() || !isLetterOrDigit(chars[len(chars)-1].r)) {
		chars = chars[:len(chars)-1]
	}
	return len(chars) > 0 && len(chars) < maxSourcesHeading && sourcesHeadings[plain(chars)]
}

// isSourcesParagraph reports whether u is a heading of sources, a colon, and links without other prose.
func (s *scratch) isSourcesParagraph(u *unit) bool {
	if !u.cites() {
		return false
	}
	colon := u.start
	for limit := min(u.end, u.start+maxSourcesParagraph); ; colon++ {
		if colon == limit {
			return false
		}
		if s.visible[colon] == ':' {
			break
		}
	}
	if !s.isSourcesHeading(u, colon) {
		return false
	}
	// After the colon, no letter may be outside of labels and hosts. Other addresses have become spaces.
	labels, hosts := s.labels[u.labelStart:u.labelEnd], s.hosts[u.hostStart:u.hostEnd]
	for i := colon + 1; i < u.end; i++ {
		for len(labels) > 0 && labels[0].end <= i {
			labels = labels[1:]
		}
		for len(hosts) > 0 && hosts[0].end <= i {
			hosts = hosts[1:]
		}
		inLabel := len(labels) > 0 && labels[0].start <= i
		inHost := len(hosts) > 0 && hosts[0].start <= i
		if !inLabel && !inHost && isLetter(s.visible[i]) {
			return false
		}
	}
	return true
}

// normalize sets s.chars to the normal form of the visible characters of u before end, and returns it.
func (s *scratch) normalize(u *unit, end int32) []char {
	n := normalizer{out: slices.Grow(s.chars[:0], int(end-u.start)), from: s.charOrigins[:0], ascii: s.ascii}
	next := u.start
	for k := u.hostStart; ; k++ {
		stop := end
		if k < u.hostEnd {
			stop = min(end, s.hosts[k].start)
		}
		if next < stop {
			n.addAll(s.visible[next:stop], next)
		}
		if k >= u.hostEnd || s.hosts[k].start >= end {
			break
		}
		// A host is one character, whose number leads back to s.hosts.
		placeholder := char{r: -1 - k, traits: mayBegin}
		n.base = placeholder
		n.append(placeholder, s.hosts[k].start)
		next = s.hosts[k].end
	}
	s.chars, s.charOrigins = n.out, n.from
	return n.out
}

// sourcesStarts has the first word of each heading of a list of sources.
var sourcesStarts = sync.OnceValue(func() *startSet {
	f := newStartSet()
	for heading := range sourcesHeadings {
		first, _, _ := strings.Cut(heading, " ")
		f.add(first)
	}
	return f
})

// mayBeginWithSources reports whether a unit of the block may begin with a heading of sources, after characters that
// are neither letters nor digits.
func mayBeginWithSources(block []byte) bool {
	if bytes.IndexByte(block, '<') >= 0 { // tags divide a block into units
		return sourcesStarts().mayBeIn(block)
	}
	for i, c := range block {
		switch {
		case c == '[' && i+1 < len(block) && is(rune(block[i+1]), asciiLetter) && (i == 0 || block[i-1] != '!'):
			// A label that begins with a letter is visible, unless it is an address or, after a !, describes an image.
		case c >= utf8.RuneSelf, c == '[', c == '&', c == '`': // what follows may be invisible
			return sourcesStarts().mayBeIn(block)
		case wordBytes[c]:
			token := block[i:] // an address that the word belongs to shows before a space or a ]
			for end, c := range token {
				if c == ' ' || c == '\n' || c == ']' {
					token = token[:end]
					break
				}
			}
			if cites, _ := readRoughly(token); cites { // an address is not part of the heading
				return sourcesStarts().mayBeIn(block)
			}
			// The first word of the block decides.
			return sourcesStarts().kinds[c] == startFirst && sourcesStarts().mayBegin(block[i:])
		}
	}
	return false
}

// mayEndWithSources reports whether the answer may end with a list of sources: one of the blocks at the end that may
// have links or addresses, or the block before them, begins with a word of a heading.
func (s *scratch) mayEndWithSources() bool {
	// The blocks are read from the end of the answer backward, up to one that is prose for sure.
	last := true // no block so far shows anything for sure
	for k := len(s.blocks) - 1; k >= 0; k-- {
		block := s.src[s.blocks[k].start:s.blocks[k].end]
		cites, shown := readRoughly(block)
		prose := shown && !cites
		// The last block with anything to see can be a list only if it has links or addresses itself.
		if !(last && prose) && mayBeginWithSources(block) {
			return true
		}
		if prose {
			return false
		}
		last = last && !shown
	}
	return false
}

// readRoughly reports whether a block may have a link, an address or a mark whose letters are not shown. If it has none,
// shown tells whether it has an ASCII letter or digit.
func readRoughly(block []byte) (cites, shown bool) {
	// IndexByte is much faster than a loop.
	for _, c := range [...]byte{'[', '<', '&', '@', "【"[0]} {
		if bytes.IndexByte(block, c) >= 0 {
			return true, true
		}
	}
	// In an address something follows the dot or the colon at once.
	for _, c := range [...]byte{'.', ':'} {
		for rest := block; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			if rest = rest[i+1:]; len(rest) > 0 && rest[0] != ' ' && rest[0] != '\n' {
				return true, true
			}
		}
	}
	return false, slices.ContainsFunc(block, func(c byte) bool { return wordBytes[c] })
}
