package match

import (
	"slices"
	"unicode/utf8"
)

// An occurrence is a place where a brand is named: chars[start:end] of a unit.
type occurrence struct {
	start, end int32
	length     int32 // in characters of the normal form, also of a host; of the kind domain: in visible characters
	brand      int32
	name       int32 // index of the Matcher's names, -1 for the kind domain
	kind       kind
	conflict   bool // see M11
	absent     bool // see M12
	echoed     bool
}

// A search finds the occurrences of a unit.
type search struct {
	m           *Matcher
	searched    []char         // the normal form of the unit
	starts      []int32        // where names and phrases of absence may begin
	trie        *trie          // that is searched
	start       int            // where the occurrence that is being followed begins
	occurrences []occurrence   // by start
	excluded    [][]occurrence // of excluded phrases, by brand and start
	excluding   []int32        // brands that have some
	longest     int32          // of excluded
	takenAt     []bool         // by character: covered by a taken occurrence
	order       []int32        // of the occurrences, longest first
	lengths     []int32        // by length: first the number of occurrences, then the next index in order
}

// search finds the occurrences in the normal form of a unit, also overlapping ones, and keeps one for each span: the one
// that wins. That depends on the excluded phrases, which are searched first. A span may be thousands of names.
func (m *Matcher) search(s *scratch, u *unit, chars []char) {
	s.m, s.searched = m, chars
	s.findStarts(chars)
	// Only the lists that the last unit used are emptied: an account may have 100 brands.
	s.forgetExcluded()
	if len(m.excluded.edges) > 0 {
		s.trie = m.excluded
		for _, start := range s.starts {
			s.searchAt(int(start))
		}
	}
	s.trie = m.trie
	s.occurrences = s.occurrences[:0]
	for _, start := range s.starts {
		first := len(s.occurrences)
		s.searchAt(int(start))
		// A single occurrence without excluded phrases, the usual case, needs no comparison.
		if n := len(s.occurrences) - first; n > 1 || n == 1 && len(s.excluding) > 0 {
			m.keepBest(s, u, first)
		}
	}
}

// searchAt finds what begins at searched[i].
func (s *scratch) searchAt(i int) {
	if !s.trie.mayBegin(s.searched[i:]) {
		return
	}
	r := s.searched[i].r
	if r < 0 {
		s.searchHost(i, &s.hosts[-1-r])
		return
	}
	edges := s.trie.begin(r)
	if len(edges) == 0 || !leftBound(s.searched, i) {
		return
	}
	s.start = i
	for _, e := range edges {
		if e.rule.allows(s.searched[i].isCapital()) && s.trie.nodes[e.to].mayFollow(s.searched, i+1) {
			// A leading dot is not part of the first token, so first is where its letters begin. over looks at their
			// case.
			first := i
			if r == '.' {
				first++
			}
			s.from(e.to, i+1, first)
		}
	}
}

// findStarts finds where names and phrases of absence may begin: never inside a word, see leftBound. It has no branch
// that depends on the character, as most units have an occurrence, and many words.
func (s *scratch) findStarts(chars []char) {
	starts := slices.Grow(s.starts[:0], len(chars))[:len(chars)]
	n, before := 0, traits(0)
	for i := range chars {
		c := chars[i].traits
		// Each index is written, and kept only if n advances: if the character may begin something, and not both it and
		// the one before are in a word.
		starts[n] = int32(i)
		n += int(c/mayBegin&1) &^ int(c&before&inWord/inWord)
		before = c
	}
	s.starts = starts[:n]
}

// searchHost finds host-shaped names that a bare host is, and the brand that owns it.
func (s *scratch) searchHost(i int, h *host) {
	m, excluded := s.m, s.trie == s.m.excluded
	if len(m.hosts) > 0 {
		key := s.hostKey(h)
		for _, name := range m.hosts[string(key)] {
			if m.names[name].exclude == excluded {
				s.addOccurrence(name, i, i+1, len(s.hostChars))
			}
		}
	}
	if excluded || len(m.owners) == 0 || h.inLabel {
		return
	}
	if d, ok := m.owners.ofHost(s.hostname(h)); ok {
		s.occurrences = append(s.occurrences, occurrence{
			start: int32(i), end: int32(i + 1), length: h.end - h.start,
			brand: d.brand, name: -1, kind: kindDomain, conflict: d.tie,
		})
	}
}

// hostKey returns the normal form of a host.
func (s *scratch) hostKey(h *host) []byte {
	n := normalizer{out: s.hostChars[:0], from: s.hostOrigins[:0], ascii: &asciiNormal}
	for i := h.start; i < h.end; i++ {
		n.add(s.visible[i], i)
	}
	s.hostChars, s.hostOrigins = n.out, n.from
	s.key = s.key[:0]
	for _, c := range n.out {
		s.key = utf8.AppendRune(s.key, c.r)
	}
	return s.key
}

// hostname returns a bare host as [Hostname] does.
func (s *scratch) hostname(h *host) []byte {
	s.key = s.key[:0]
	for _, r := range s.visible[h.start:h.end] {
		if r >= utf8.RuneSelf {
			name, _ := Hostname(string(s.visible[h.start:h.end]))
			return append(s.key[:0], name...)
		}
		s.key = append(s.key, lowerASCII(byte(r)))
	}
	name := s.key
	if len(name) > 4 && string(name[:4]) == "www." && len(parent(name[4:])) > 0 {
		name = name[4:]
	}
	return name
}

// addOccurrence adds an occurrence of a name, or of an excluded phrase. length is its length for M11, which for a
// host is not end - start.
func (s *search) addOccurrence(name int32, start, end, length int) {
	n := &s.m.names[name]
	o := occurrence{
		start: int32(start), end: int32(end), length: int32(length), brand: n.brand, name: name, kind: n.kind}
	if n.exclude {
		s.addExcluded(o)
	} else {
		s.occurrences = append(s.occurrences, o)
	}
}

// from goes on in the trie from node n before searched[i]. The present token begins at searched[first].
func (s *search) from(n int32, i, first int) {
	t := s.trie
	for {
		// The lists of a node end where the lists of the next begin; see trie.
		node, after := &t.nodes[n], &t.nodes[n+1]
		if node.ends < after.ends && rightBound(s.searched, i) {
			for _, name := range t.ends[node.ends:after.ends] {
				s.addOccurrence(name, s.start, i, i-s.start)
			}
		}
		// A node may have gaps and edges: names that begin alike may go on either way.
		for k := node.gaps; k < after.gaps; k++ {
			s.over(&t.gaps[k], i, first)
		}
		if i == len(s.searched) {
			return
		}
		next := int32(-1)
		for _, e := range t.edges[node.edges:after.edges] {
			if e.r != s.searched[i].r || !e.rule.allows(s.searched[i].isCapital()) {
				continue
			}
			// Several edges have this character, with different rules of case. All but the last are followed by
			// recursion.
			if next >= 0 {
				s.from(next, i+1, first)
			}
			next = e.to
		}
		if next < 0 {
			return
		}
		n = next
		i++
	}
}

// over continues after a gap in each way that the gap allows.
func (s *search) over(g *gap, i, first int) {
	next := rune(0) // the end
	if i < len(s.searched) {
		next = s.searched[i].r
	}
	switch g.kind {
	// Between runs may be nothing, a space or separator, a dot and a space if the name has a dot, or what the name
	// has.
	case betweenRuns:
		s.from(g.to, i, i)
		if next == ' ' || isSeparator(next) {
			s.from(g.to, i+1, i+1)
		}
		if g.dotSpace && s.has(i, ". ") {
			s.from(g.to, i+2, i+2)
		}
		if n := s.length(i, g.own); n > 0 {
			s.from(g.to, i+n, i+n)
		}
	// A space between humps needs capitals on both sides: "Hub Drift" is HubDrift, "hub drift" is prose.
	case betweenHumps:
		s.from(g.to, i, i)
		if isSeparator(next) ||
			next == ' ' && i+1 < len(s.searched) && s.searched[first].isCapital() && s.searched[i+1].isCapital() {
			s.from(g.to, i+1, i+1)
		}
	case besideAmpersand:
		for _, i := range s.besideAmpersand(i, g.own) {
			if i >= 0 {
				s.from(g.to, i, i)
			}
		}
	// The text has the & with a gap on each side, or a word in place of all three.
	case acrossAmpersand:
		for _, i := range s.besideAmpersand(i, g.own) {
			if i < 0 || !s.has(i, "&") {
				continue
			}
			for _, i := range s.besideAmpersand(i+1, g.second) {
				if i >= 0 {
					s.from(g.to, i, i)
				}
			}
		}
		for _, word := range wordsForAmpersand {
			if s.has(i, word) {
				s.from(g.to, i+len(word), i+len(word))
			}
		}
	}
}

// wordsForAmpersand may stand in place of an & and the gaps beside it.
var wordsForAmpersand = [...]string{" and ", " und ", " et ", " y ", " e ", " og ", " och ", " en "}

// besideAmpersand returns the indexes that may follow a gap beside an &: after nothing, a space, and what the name
// has there; else -1.
func (s *search) besideAmpersand(i int, own string) [3]int {
	behind := [3]int{i, -1, -1}
	if s.has(i, " ") {
		behind[1] = i + 1
	}
	if n := s.length(i, own); n > 0 {
		behind[2] = i + n
	}
	return behind
}

// has reports whether text, which is not empty, is at searched[i].
func (s *search) has(i int, text string) bool { return s.length(i, text) > 0 }

// length returns the number of characters of text if it is at searched[i], else 0.
func (s *search) length(i int, text string) int {
	n := 0
	for _, r := range text {
		if i+n >= len(s.searched) || s.searched[i+n].r != r {
			return 0
		}
		n++
	}
	return n
}
