package match

import (
	"cmp"
	"slices"
)

// resolve returns the occurrences of a unit that are taken (M11), by start: excluded phrases remove occurrences of
// their brand, then the longest win.
func (m *Matcher) resolve(s *scratch, u *unit) []occurrence {
	if len(s.excluded) > 0 {
		s.removeExcluded()
	}
	m.keepBestOfEachSpan(s, u)
	if s.overlap() {
		s.takeLongest()
	}
	return s.occurrences
}

// removeExcluded removes the occurrences that overlap an excluded phrase of their brand and are not longer.
func (s *search) removeExcluded() {
	longest := int32(0)
	for _, e := range s.excluded {
		longest = max(longest, e.end-e.start)
	}
	near := s.excluded
	s.occurrences = slices.DeleteFunc(s.occurrences, func(o occurrence) bool {
		for len(near) > 0 && near[0].start+longest <= o.start {
			near = near[1:]
		}
		for _, e := range near {
			if e.start >= o.end {
				break
			}
			if e.end > o.start && e.brand == o.brand && (e.length >= o.length || e.end == o.end && e.start == o.start) {
				return true
			}
		}
		return false
	})
}

// keepBestOfEachSpan keeps, of the occurrences that cover one span, the one that wins, and sets its conflict.
func (m *Matcher) keepBestOfEachSpan(s *scratch, u *unit) {
	kept := s.occurrences[:0]
	for rest := s.occurrences; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].start == rest[0].start {
			n++
		}
		same := rest[:n]
		rest = rest[n:]
		if n > 1 {
			slices.SortStableFunc(same, func(x, y occurrence) int {
				if x.end != y.end {
					return cmp.Compare(x.end, y.end)
				}
				return m.compare(s, u, x, y)
			})
		}
		for len(same) > 0 {
			best := same[0]
			for same = same[1:]; len(same) > 0 && same[0].end == best.end; same = same[1:] {
				if same[0].brand != best.brand && same[0].kind != kindDomain && best.kind != kindDomain {
					best.conflict = true
				}
			}
			kept = append(kept, best)
		}
	}
	s.occurrences = kept
}

// compare orders two occurrences of one span: the one that wins first.
func (m *Matcher) compare(s *scratch, u *unit, x, y occurrence) int {
	if a, b := m.isExact(s, u, x), m.isExact(s, u, y); a != b {
		if a {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.kind, y.kind), m.compareBrands(x.brand, y.brand))
}

// isExact reports whether the visible characters of an occurrence, with the marks after it that the normal form
// drops, are the name as it was saved.
func (m *Matcher) isExact(s *scratch, u *unit, o occurrence) bool {
	if o.name < 0 {
		return false
	}
	written := m.names[o.name].written
	span := s.visibleSpan(u, o)
	for i := span.start; i < span.end; i++ {
		if s.visible[i] == gone {
			continue
		}
		if len(written) == 0 || written[0] != s.visible[i] {
			return false
		}
		written = written[1:]
	}
	return len(written) == 0
}

// visibleSpan returns the visible characters of an occurrence, with the marks after it that the normal form drops.
func (s *scratch) visibleSpan(u *unit, o occurrence) span {
	start, last := s.charOrigin(o.start), s.chars[o.end-1]
	if last.isHost() {
		return span{start, s.hosts[-1-last.r].end}
	}
	next := u.end
	if int(o.end) < len(s.chars) {
		next = s.charOrigin(o.end)
	}
	end := s.charOrigin(o.end-1) + 1
	for end < next && isMark(s.visible[end]) {
		end++
	}
	return span{start, end}
}

// overlap reports whether some of the occurrences overlap.
func (s *search) overlap() bool {
	for i := 1; i < len(s.occurrences); i++ {
		if s.occurrences[i].start < s.occurrences[i-1].end {
			return true
		}
	}
	return false
}

// takeLongest takes occurrences, the longest first, then from left to right, unless they overlap a taken one. They
// are sorted by counting, so that the time is linear. A host overlaps nothing but itself.
func (s *search) takeLongest() {
	s.lengths = s.lengths[:0]
	for _, o := range s.occurrences {
		n := int(o.end - o.start)
		for len(s.lengths) <= n {
			s.lengths = append(s.lengths, 0)
		}
		s.lengths[n]++
	}
	next := int32(0)
	for n := len(s.lengths) - 1; n >= 0; n-- {
		s.lengths[n], next = next, next+s.lengths[n]
	}
	s.order = slices.Grow(s.order[:0], len(s.occurrences))[:len(s.occurrences)]
	for i, o := range s.occurrences {
		n := o.end - o.start
		s.order[s.lengths[n]] = int32(i)
		s.lengths[n]++
	}
	s.takenAt = slices.Grow(s.takenAt[:0], len(s.searched))[:len(s.searched)]
	clear(s.takenAt)
	for _, i := range s.order {
		o := &s.occurrences[i]
		// A taken occurrence is not shorter, so it covers an end of an occurrence that it overlaps.
		if s.takenAt[o.start] || s.takenAt[o.end-1] {
			o.end = o.start
			continue
		}
		for k := o.start; k < o.end; k++ {
			s.takenAt[k] = true
		}
	}
	s.occurrences = slices.DeleteFunc(s.occurrences, func(o occurrence) bool { return o.end == o.start })
}
