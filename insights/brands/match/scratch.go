package match

// A scratch has the buffers of one call. A Matcher reuses them.
type scratch struct {
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
	seen  []int32

	chars     []char // the normal form of a unit
	hostChars []char

	search
	absence
	echo
	counts []count
}

func newScratch() *scratch {
	s := &scratch{defined: make(map[string]struct{})}
	s.lastRun = make(map[int]int)
	return s
}

// keptScratch bounds the visible characters of answers whose buffers are kept: about 40 bytes each.
const keptScratch = 1 << 18

func (m *Matcher) acquire() *scratch { return m.scratch.Get().(*scratch) }

func (m *Matcher) release(s *scratch) {
	if cap(s.visible) <= keptScratch && cap(s.src) <= 4*keptScratch {
		m.scratch.Put(s)
	}
}

// textIndex returns the index in the text of visible character i.
func (s *scratch) textIndex(i int32) int {
	return int(origin(s.hidden, origin(s.lines, s.visibleAt[i])))
}
