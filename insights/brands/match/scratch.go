package match

import "sync"

// A scratch has the buffers of one call. It is taken from a pool, so each method that fills a buffer must first empty
// it.
type scratch struct {
	// Segments lead from each form of a text back to the one before: from the normal form to visible, src, what M1
	// leaves, and the text itself.
	hidden []segment // from what is left after M1 to the text; none: nothing was removed
	src    []byte    // the content of blocks
	lines  []segment // from src to what is left after M1
	blocks []block

	defined map[string]struct{} // labels of link definitions
	key     []byte              // of a look-up

	inline
	hosts []host
	flags []uint8 // of the characters of a unit, for addresses
	found []span  // hosts of a unit
	seen  []int32 // indexes of units, see dropSources

	ascii *[128]char // of the Matcher

	chars       []char    // the normal form of a unit
	charOrigins []segment // from chars to visible
	hostChars   []char
	hostOrigins []segment

	search
	absence
	echo
	counts    []count
	mentioned []int32 // brands, by first mention: units are counted in the order of the text
}

// newScratch returns a scratch with its maps, which are kept and cleared.
func newScratch(ascii *[128]char) *scratch {
	s := &scratch{ascii: ascii, defined: make(map[string]struct{})}
	s.lastRun = make(map[int]int)
	return s
}

// keptScratch bounds the visible characters of answers whose buffers are kept, and what was found in them: about 40 bytes
// each.
const keptScratch = 1 << 18

// scratches has the *scratch that no call uses. All Matchers share them: there are hundreds, and few calls at a time.
var scratches = sync.Pool{New: func() any { return newScratch(nil) }}

// acquire returns a scratch for one call on the Matcher. The caller must release it.
func (m *Matcher) acquire() *scratch {
	s := scratches.Get().(*scratch)
	s.ascii = &m.ascii
	return s
}

// release returns a scratch to the pool, unless a large answer made its buffers too large to keep.
func (m *Matcher) release(s *scratch) {
	s.m, s.trie, s.ascii = nil, nil, nil // of a Matcher that may not be used again
	if cap(s.visible) <= keptScratch && cap(s.src) <= 4*keptScratch && cap(s.occurrences) <= keptScratch {
		scratches.Put(s)
	}
}

// charOrigin returns the index of the visible character that s.chars[i] comes from.
func (s *scratch) charOrigin(i int32) int32 { return origin(s.charOrigins, i) }

// textIndex returns the index in the text of visible character i.
func (s *scratch) textIndex(i int32) int {
	return int(origin(s.hidden, origin(s.lines, s.origin(i))))
}
