package match

import "strings"

// A Sample shows an occurrence of a brand to customers.
type Sample struct {
	Matched string // the visible text of the occurrence
	Excerpt string // Matched with up to 80 visible characters on each side
	Flags   Flags  // Absence and Echo, if they apply to this occurrence
}

// An excerpt has up to excerptReach visible characters on each side of the occurrence.
const excerptReach = 80

// Sample returns the first occurrence of a brand in an answer, whether or not it is flagged. brand is an index of the
// compiled brands.
func (m *Matcher) Sample(brand int, a Answer) (sample Sample, ok bool) {
	s := m.acquire()
	defer m.release(s)
	m.readNaming(s, a.Text)
	m.eachUnit(s, a.Question, func(u *unit, taken []occurrence) bool {
		for i := range taken {
			if o := &taken[i]; int(o.brand) == brand {
				sample, ok = s.sample(u, o), true
				return false
			}
		}
		return true
	})
	return sample, ok
}

// sample shows an occurrence. The excerpt does not leave its unit.
func (s *scratch) sample(u *unit, o *occurrence) Sample {
	// The excerpt grows from the occurrence by one character at a time on each side, where white space in a row
	// counts once.
	at := s.visibleSpan(u, *o)
	start, end := at.start, at.end
	for n := 0; start > u.start && n < excerptReach; n++ {
		start = s.stepBack(u, start)
	}
	for n := 0; end < u.end && n < excerptReach; n++ {
		end = s.step(u, end)
	}
	return Sample{Matched: s.text(at.start, at.end), Excerpt: strings.TrimSpace(s.text(start, end)), Flags: o.flags()}
}

// step returns the index after the character at i. White space in a row is one character, as in [scratch.text].
func (s *scratch) step(u *unit, i int32) int32 {
	space := s.isInvisible(i)
	for i++; space && i < u.end && s.isInvisible(i); i++ {
	}
	return i
}

// stepBack returns the index of the character before i.
func (s *scratch) stepBack(u *unit, i int32) int32 {
	for i--; s.isInvisible(i) && i > u.start && s.isInvisible(i-1); i-- {
	}
	return i
}

// isInvisible reports whether visible character i is white space or part of a link.
func (s *scratch) isInvisible(i int32) bool { return s.visible[i] == gone || isSpace(s.visible[i]) }

// text returns visible characters, with white space in a row as one space. A link is a space.
func (s *scratch) text(start, end int32) string {
	var b strings.Builder
	space := false
	for i := start; i < end; i++ {
		if s.isInvisible(i) {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(s.visible[i])
	}
	if space {
		b.WriteByte(' ')
	}
	return b.String()
}
