package match

import (
	"slices"
	"unicode/utf8"
)

// An echo repeats at least echoLength words in a row.
const echoLength = 4

// A Question is a question that was read once, for all its answers. Words have numbers, so that a sequence of four is
// a key of fixed size.
type Question struct {
	branded   bool
	words     map[string]int32 // the normal form of each word and its number
	firsts    uint32           // the bits r&31 of the first characters of words
	sequences map[[echoLength]int32]struct{}
}

// Branded reports whether the question mentions an own brand.
func (q *Question) Branded() bool { return q.branded }

// Question reads a question. The result is valid for this Matcher only: its brands decide whether it is branded.
func (m *Matcher) Question(text string) *Question {
	s := m.acquire()
	defer m.release(s)
	q := &Question{words: make(map[string]int32), sequences: make(map[[echoLength]int32]struct{})}
	s.read(text)
	m.eachUnit(s, nil, func(_ *unit, taken []occurrence) bool {
		for _, o := range taken {
			q.branded = q.branded || m.brands[o.brand].Own && o.counts()
		}
		// One own brand is enough.
		return !q.branded
	})
	for i := range s.units {
		u := &s.units[i]
		// All units are read again, for their words: eachUnit stops early and skips units without occurrences.
		s.readWords(s.normalize(u, u.end), func(key []byte) int32 {
			// A conversion in the index of a map does not allocate.
			n, ok := q.words[string(key)]
			if !ok {
				n = int32(len(q.words))
				q.words[string(key)] = n
				first, _ := utf8.DecodeRune(key)
				q.firsts |= 1 << (first & 31)
			}
			return n
		})
		for k := range s.ids {
			if sequence, ok := s.sequence(k); ok {
				q.sequences[sequence] = struct{}{}
			}
		}
	}
	return q
}

// An echo finds words of the question in a unit.
type echo struct {
	wordSpans []span
	ids       []int32 // of the words, -1: not in the question
	echoed    []bool
}

// flagEcho flags the occurrences whose words all belong to sequences of four words that the question has too (M12).
func (s *scratch) flagEcho(q *Question, chars []char, taken []occurrence) {
	// The words are read only if an occurrence may begin with a word of the question.
	if len(q.sequences) == 0 || !slices.ContainsFunc(taken, func(o occurrence) bool { return s.mayEcho(q, chars, o.start) }) {
		return
	}
	s.readWords(chars, func(key []byte) int32 {
		if n, ok := q.words[string(key)]; ok {
			return n
		}
		return -1
	})
	s.echoed = slices.Grow(s.echoed[:0], len(s.ids))[:len(s.ids)]
	clear(s.echoed)
	for k := range s.ids {
		if sequence, ok := s.sequence(k); ok {
			if _, ok := q.sequences[sequence]; ok {
				for i := range echoLength {
					s.echoed[k+i] = true
				}
			}
		}
	}
	// w is the first word that ends after the start of the occurrence. Occurrences are ordered, so it never goes
	// back.
	w := 0
	for i := range taken {
		o := &taken[i]
		for w < len(s.wordSpans) && s.wordSpans[w].end <= o.start {
			w++
		}
		// Each occurrence touches a word, as a name has a letter or a digit.
		o.echoed = true
		for k := w; k < len(s.wordSpans) && s.wordSpans[k].start < o.end; k++ {
			o.echoed = o.echoed && s.echoed[k]
		}
	}
}

// mayEcho reports whether the word that begins at chars[i] may be in the question. Most names are not.
func (s *scratch) mayEcho(q *Question, chars []char, i int32) bool {
	if !chars[i].isWord() || i > 0 && chars[i-1].isWord() {
		return true // its word begins elsewhere
	}
	// This test is faster than the map, and excludes most words.
	if q.firsts>>(chars[i].r&31)&1 == 0 {
		return false
	}
	key, _ := s.wordAt(chars, int(i))
	_, ok := q.words[string(key)]
	return ok
}

// wordAt returns the letters, marks and digits in a row from chars[i] on, and where they end.
func (s *scratch) wordAt(chars []char, i int) (key []byte, end int) {
	s.key = s.key[:0]
	for ; i < len(chars) && chars[i].isWord(); i++ {
		s.key = utf8.AppendRune(s.key, chars[i].r)
	}
	return s.key, i
}

// sequence returns the four words that begin with word k, if all are in the question.
func (s *echo) sequence(k int) (sequence [echoLength]int32, ok bool) {
	if k+echoLength > len(s.ids) {
		return sequence, false
	}
	for i, id := range s.ids[k : k+echoLength] {
		if id < 0 {
			return sequence, false
		}
		sequence[i] = id
	}
	return sequence, true
}

// readWords sets wordSpans and ids: the words of a unit, maximal sequences of letters, marks and digits. A host is
// a word.
func (s *scratch) readWords(chars []char, id func(key []byte) int32) {
	s.wordSpans, s.ids = s.wordSpans[:0], s.ids[:0]
	for i := 0; i < len(chars); {
		start := i
		var key []byte
		switch {
		case chars[i].isHost():
			key = s.hostKey(&s.hosts[-1-chars[i].r])
			i++
		case chars[i].isWord():
			key, i = s.wordAt(chars, i)
		default:
			i++
			continue
		}
		s.wordSpans = append(s.wordSpans, span{int32(start), int32(i)})
		s.ids = append(s.ids, id(key))
	}
}
