package match

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// Reach of a phrase of absence, in spaces.
const (
	maxSpacesBehindPhrase = 12 // from a phrase to the name after it
	maxSpacesBeforePhrase = 3  // from the name to a phrase after it
)

// An absence finds the phrases of a unit by which an answer says that it knows nothing of a name.
type absence struct {
	phraseEnds   []int32 // of phrases before a name, sorted
	phraseStarts []int32 // of phrases after a name, sorted
	turns        []span
	spaces       []int32 // before each character
	lastStop     []int32 // for each index, the start of the last sentence end or turn word that ends before it
	nextStop     []int32 // for each index, the end of the first sentence end or turn word that begins after it
}

// flagAbsence flags the occurrences that the reach of a phrase covers (M12). The occurrences are ordered by start, so
// one pass over the phrases is enough. Only the nearest phrase on each side of an occurrence is considered.
func (s *scratch) flagAbsence(chars []char, taken []occurrence) {
	// Most units have no phrase. Stops and turn words are searched only if there is one.
	s.findPhrases(chars, s.starts)
	if len(s.phraseEnds) == 0 && len(s.phraseStarts) == 0 {
		return
	}
	slices.Sort(s.phraseEnds)
	s.findTurns(chars)
	s.findStops(chars)
	ends, starts := s.phraseEnds, s.phraseStarts
	// before is the end of the last phrase that ends at or before the occurrence.
	before := int32(-1)
	for i := range taken {
		o := &taken[i]
		for len(ends) > 0 && ends[0] <= o.start {
			before, ends = ends[0], ends[1:]
		}
		for len(starts) > 0 && starts[0] < o.end {
			starts = starts[1:]
		}
		// A phrase before the name reaches it if the last stop before the name begins before the end of the phrase. A
		// phrase after the name is the mirror image.
		o.absent = before >= 0 && s.lastStop[o.start] < before &&
			s.spaces[o.start]-s.spaces[before] <= maxSpacesBehindPhrase ||
			len(starts) > 0 && s.nextStop[o.end] > starts[0] &&
				s.spaces[starts[0]]-s.spaces[o.end] <= maxSpacesBeforePhrase
	}
}

// findPhrases finds the phrases of a unit, which may begin at starts.
func (s *absence) findPhrases(chars []char, starts []int32) {
	s.phraseEnds, s.phraseStarts = s.phraseEnds[:0], s.phraseStarts[:0]
	t := phrases()
	for _, i := range starts {
		if !t.mayBegin(chars[i:]) {
			continue
		}
		t.match(chars, int(i), func(end int, uses uint8) {
			if uses&beforeName != 0 {
				s.phraseEnds = append(s.phraseEnds, int32(end))
			}
			if uses&behindName != 0 {
				s.phraseStarts = append(s.phraseStarts, i)
			}
		})
	}
}

// findTurns finds the turn words of a unit, which matter only beside phrases.
func (s *absence) findTurns(chars []char) {
	s.turns = s.turns[:0]
	for i := range chars {
		if i == 0 || chars[i-1].traits&inWord == 0 {
			turns().match(chars, i, func(end int, _ uint8) { s.turns = append(s.turns, span{int32(i), int32(end)}) })
		}
	}
}

// findStops finds what ends the reach of a phrase, and counts spaces.
func (s *absence) findStops(chars []char) {
	n := len(chars)
	s.spaces = append(s.spaces[:0], 0)
	s.lastStop = slices.Grow(s.lastStop[:0], n+1)[:n+1]
	s.nextStop = slices.Grow(s.nextStop[:0], n+1)[:n+1]
	for i := range n + 1 {
		// No stop: these values never keep a phrase from reaching a name in flagAbsence.
		s.lastStop[i], s.nextStop[i] = -1, int32(n+1)
	}
	for i, c := range chars {
		spaces := s.spaces[i]
		if c.r == ' ' {
			spaces++
		}
		s.spaces = append(s.spaces, spaces)
		if endsSentence(chars, i) {
			s.lastStop[i+1], s.nextStop[i] = int32(i), int32(i+1)
		}
	}
	for _, t := range s.turns {
		s.lastStop[t.end] = max(s.lastStop[t.end], t.start)
		s.nextStop[t.start] = min(s.nextStop[t.start], t.end)
	}
	// So far only the ends and starts of stops have a value. They are carried forward, and then backward.
	for i := 1; i <= n; i++ {
		s.lastStop[i] = max(s.lastStop[i], s.lastStop[i-1])
	}
	for i := n - 1; i >= 0; i-- {
		s.nextStop[i] = min(s.nextStop[i], s.nextStop[i+1])
	}
}

// endsSentence reports whether chars[i] ends a sentence. A dot inside a word or a number does not, so a space or a
// closing mark must follow it.
func endsSentence(chars []char, i int) bool {
	switch chars[i].r {
	case '!', '?', '…', ';', '。':
		return true
	case '.':
		if i+1 == len(chars) {
			return true
		}
		switch chars[i+1].r {
		case ' ', '\'', '"', '”', '»', ')', ']':
			return true
		}
	}
	return false
}

// Uses of a phrase.
const (
	beforeName = 1 << iota
	behindName
)

// A phraseTrie has phrases or words, which consist of a-z, spaces and apostrophes.
type phraseTrie struct {
	nodes  []phraseNode
	firsts [utf8.RuneSelf]int32 // what the root's edges lead to
}

// A phraseNode stands for the text that leads to it from the root.
type phraseNode struct {
	uses  uint8 // of the phrases that end here; 0: none
	edges []phraseEdge
}

// A phraseEdge leads to the node after one more character.
type phraseEdge struct {
	r  rune
	to int32
}

// turns returns the trie of the turn words.
var turns = sync.OnceValue(func() *phraseTrie {
	t := newPhraseTrie()
	t.addAll(turnWords, 1) // they have one use
	return &t
})

// newPhraseTrie returns a trie that has only the root, node 0. So 0 also means that there is no node.
func newPhraseTrie() phraseTrie { return phraseTrie{nodes: make([]phraseNode, 1)} }

// addAll adds patterns, in the syntax of phrasesBefore.
func (t *phraseTrie) addAll(patterns []string, use uint8) {
	for _, p := range patterns {
		ends, _ := t.add(p, []int32{0})
		for _, n := range ends {
			t.nodes[n].uses |= use
		}
	}
}

// A phraseIndex has the phrases of absence, each of which has three characters or more.
type phraseIndex struct {
	phraseTrie
	thirds [32][32]uint32 // by the first two characters &31: the bits r&31 of the third
}

// phrases returns the index of the phrases of absence.
var phrases = sync.OnceValue(func() *phraseIndex {
	s := &phraseIndex{phraseTrie: newPhraseTrie()}
	s.addAll(phrasesBefore, beforeName)
	s.addAll(phrasesAfter, behindName)
	for _, first := range s.nodes[0].edges {
		for _, second := range s.nodes[first.to].edges {
			for _, third := range s.nodes[second.to].edges {
				// r&31 is different for each letter from a to z. Another character may collide with a letter, which
				// only costs a search in the trie.
				s.thirds[first.r&31][second.r&31] |= 1 << (third.r & 31)
			}
		}
	}
	return s
})

// mayBegin is a fast test whether chars begins with a phrase. Few words pass it.
func (s *phraseIndex) mayBegin(chars []char) bool {
	return len(chars) >= 3 && s.thirds[chars[0].r&31][chars[1].r&31]>>(chars[2].r&31)&1 != 0
}

// match calls f with the end and the uses of each phrase that begins at chars[i] and ends with a word. It does not
// look at what precedes: callers only begin where a word begins.
func (t *phraseTrie) match(chars []char, i int, f func(end int, uses uint8)) {
	n := t.first(chars[i].r)
	for k := i + 1; n > 0; k++ {
		end := k == len(chars)
		if uses := t.nodes[n].uses; uses != 0 && (end || chars[k].traits&inWord == 0) {
			f(k, uses)
		}
		if end {
			return
		}
		n = t.child(n, chars[k].r)
	}
}

// add adds the phrases of a pattern up to its end or a closing parenthesis after each of the nodes from. It
// returns the nodes at which they end, and the rest of the pattern.
func (t *phraseTrie) add(pattern string, from []int32) (ends []int32, rest string) {
	// at has the nodes that the present alternative has reached.
	at := slices.Clone(from)
	for pattern != "" {
		switch c := pattern[0]; c {
		case '(':
			// A choice inside a pattern follows each of the nodes reached so far.
			at, pattern = t.add(pattern[1:], at)
		case '|':
			ends = append(ends, at...)
			at, pattern = slices.Clone(from), pattern[1:]
		case ')':
			return append(ends, at...), pattern[1:]
		default:
			for i, n := range at {
				at[i] = t.grow(n, rune(c))
			}
			pattern = pattern[1:]
		}
	}
	return append(ends, at...), ""
}

// first returns the node that r leads to from the root, or 0.
func (t *phraseTrie) first(r rune) int32 {
	if uint32(r) >= utf8.RuneSelf {
		return 0
	}
	return t.firsts[r]
}

// child returns the node that r leads to, or 0.
func (t *phraseTrie) child(n int32, r rune) int32 {
	for _, e := range t.nodes[n].edges {
		if e.r == r {
			return e.to
		}
	}
	return 0
}

// grow returns the node that r leads to, and makes it if necessary.
func (t *phraseTrie) grow(n int32, r rune) int32 {
	if to := t.child(n, r); to > 0 {
		return to
	}
	to := int32(len(t.nodes))
	t.nodes = append(t.nodes, phraseNode{})
	t.nodes[n].edges = append(t.nodes[n].edges, phraseEdge{r, to})
	if n == 0 {
		t.firsts[r] = to
	}
	return to
}
