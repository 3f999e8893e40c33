package match

import (
	"cmp"
	"slices"
)

// forgetExcluded removes the excluded phrases of the last unit.
func (s *search) forgetExcluded() {
	for _, brand := range s.excluding {
		s.excluded[brand] = s.excluded[brand][:0]
	}
	s.excluding, s.longest = s.excluding[:0], 0
}

// addExcluded adds an excluded phrase. If several of a brand begin at one place, only the longest matters.
func (s *search) addExcluded(o occurrence) {
	// The buffer belongs to a scratch, which Matchers with fewer brands may have used before.
	for len(s.excluded) < len(s.m.brands) {
		s.excluded = append(s.excluded, nil)
	}
	s.longest = max(s.longest, o.end-o.start)
	of := s.excluded[o.brand]
	last := len(of) - 1
	if last < 0 {
		s.excluding = append(s.excluding, o.brand)
	}
	if last < 0 || of[last].start < o.start {
		s.excluded[o.brand] = append(of, o)
	} else if of[last].length < o.length {
		of[last] = o
	}
}

// isExcluded reports whether an occurrence overlaps an excluded phrase of its brand and is not longer (M11).
func (s *search) isExcluded(o occurrence) bool {
	// No phrase is longer than s.longest, so a phrase that begins before the first one searched here does not
	// overlap.
	near := s.excluded[o.brand]
	first, _ := slices.BinarySearchFunc(near, o.start-s.longest+1, func(e occurrence, start int32) int { return cmp.Compare(e.start, start) })
	for _, e := range near[first:] {
		if e.start >= o.end {
			break
		}
		// A phrase with the same span counts whatever its length: the length of an occurrence of the kind domain is in
		// visible characters, and the length of the phrase in characters of the normal form.
		if e.end > o.start && (e.length >= o.length || e.end == o.end && e.start == o.start) {
			return true
		}
	}
	return false
}

// keepBest keeps, of the occurrences from first on, which begin at one place and are not excluded, the one that wins of
// each span.
func (m *Matcher) keepBest(s *scratch, u *unit, first int) {
	kept := s.occurrences[:first]
	for _, o := range s.occurrences[first:] {
		if len(s.excluding) > 0 && s.isExcluded(o) {
			continue
		}
		k := len(kept) - 1 // names of a span are found one after the other, mostly
		for k >= first && kept[k].end != o.end {
			k--
		}
		if k < first {
			kept = append(kept, o)
		} else {
			kept[k] = m.better(s, u, kept[k], o)
		}
	}
	s.occurrences = kept
}

// better returns the one of two occurrences of a span that wins. Names of different brands conflict. An occurrence of
// the kind domain loses against a name, and does not change the name's conflict.
func (m *Matcher) better(s *scratch, u *unit, x, y occurrence) occurrence {
	conflict := x.brand != y.brand || x.conflict || y.conflict
	named := x.kind != kindDomain && y.kind != kindDomain
	if m.compare(s, u, y, x) < 0 {
		x = y
	}
	if named {
		x.conflict = conflict
	}
	return x
}

// compare orders two occurrences of one span: the one that wins first.
func (m *Matcher) compare(s *scratch, u *unit, x, y occurrence) int {
	// Length and start are equal, so the spelling is the first that decides.
	if a, b := m.isExact(s, u, x), m.isExact(s, u, y); a != b {
		if a {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.kind, y.kind), m.compareBrands(x.brand, y.brand))
}

// isExact reports whether the visible characters of an occurrence are the name as it was saved.
func (m *Matcher) isExact(s *scratch, u *unit, o occurrence) bool {
	// An occurrence of the kind domain has no name.
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
	// Up to the next character of the normal form, marks were dropped from it and Hangul letters composed into one.
	next := u.end
	if int(o.end) < len(s.chars) {
		next = s.charOrigin(o.end)
	}
	end := s.charOrigin(o.end-1) + 1
	for end < next && (isMark(s.visible[end]) || mayCompose(s.visible[end])) {
		end++
	}
	return span{start, end}
}

// resolve returns the occurrences of a unit that are taken (M11), by start: the longest win.
func (s *search) resolve() []occurrence {
	if s.overlap() {
		s.takeLongest()
	}
	return s.occurrences
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
	// The counts become the indexes at which the occurrences of each length begin, the longest first.
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
			// An empty span marks it as not taken.
			o.end = o.start
			continue
		}
		for k := o.start; k < o.end; k++ {
			s.takenAt[k] = true
		}
	}
	s.occurrences = slices.DeleteFunc(s.occurrences, func(o occurrence) bool { return o.end == o.start })
}
