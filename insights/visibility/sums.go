package visibility

import (
	"slices"
)

// A cell sums the jobs of one model, question and served version in a chunk. All numbers that metrics show can be added
// up from cells: which answers a filter or a group selects depends only on the run, the model and the question.
type cell struct {
	no      int32 // the position of the question in the run: model number × questions + question number, from 0
	version *string

	ok, empty, truncated, failed int32 // jobs by status
	known                        int32 // ok answers whose sources are known
	pages                        int32 // different pages, summed over ok answers
	brands                       []brandSum
}

// A brandSum sums what the ok answers of a cell show of one brand. Brands that do not occur have no sum.
type brandSum struct {
	brand     int32
	mentioned int32 // answers that mention it
	mentions  int32
	first     int32 // answers where its position is 1
	positions int32 // the sum of its positions
	cited     int32 // answers that cite it
	pages     int32 // its pages, summed over answers
}

// sumCells returns the cells of facts, by number and version. Each question of a model has as many ordinals as the run
// has repetitions.
func sumCells(facts []Fact, repetitions int32) []cell {
	var cells []cell
	for i := range facts {
		f := &facts[i]
		no := (f.Ordinal - 1) / repetitions
		// Facts are sorted by ordinal, so the cells of one number are at the end, one for each version.
		at := len(cells) - 1
		for at >= 0 && cells[at].no == no && !equalVersions(cells[at].version, f.Version) {
			at--
		}
		if at < 0 || cells[at].no != no {
			cells = append(cells, cell{no: no, version: f.Version})
			at = len(cells) - 1
		}
		cells[at].add(f)
	}
	return cells
}

// equalVersions reports whether two served models are equal; nil equals only nil.
func equalVersions(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// add adds the fact of one job.
func (c *cell) add(f *Fact) {
	switch f.Status {
	case OK:
		c.ok++
	case Empty:
		c.empty++
		return
	case Truncated:
		c.truncated++
		return
	case Failed:
		c.failed++
		return
	}
	if f.Known {
		c.known++
	}
	c.pages += int32(len(f.Pages))
	for i := range f.Brands {
		b := &f.Brands[i]
		s := c.brand(b.Brand)
		s.mentions += b.Mentions
		s.positions += b.Position
		s.pages += b.Citations
		if b.Mentions > 0 {
			s.mentioned++
		}
		if b.Position == 1 {
			s.first++
		}
		if b.Citations > 0 {
			s.cited++
		}
	}
}

// brand returns the sum of a brand, which stays valid until the next call.
func (c *cell) brand(number int32) *brandSum {
	i, found := slices.BinarySearchFunc(c.brands, number, func(s brandSum, n int32) int { return int(s.brand - n) })
	if !found {
		c.brands = slices.Insert(c.brands, i, brandSum{brand: number})
	}
	return &c.brands[i]
}

// A source is a host with the brand that owns the cited pages there.
type source struct {
	host  string
	owner int32 // the brand's number; 0: none
}

// A sourceCell sums the pages that the ok answers to one question of a model cite. Unlike a cell it is for all served
// versions, which sources do not show.
type sourceCell struct {
	no              int32
	pages, gapPages int32 // including pages without a host
	sources         []sourceSum
}

// A sourceSum sums the citations of a source, in all answers and in gaps: answers that mention a competitor and no own
// brand.
type sourceSum struct {
	source          int32 // its index in the chunk
	answers, pages  int32
	gapAnswers, gap int32 // gap: pages
}

// sumSources returns the sources of facts, in the order of their first citation, and their cells.
func sumSources(facts []Fact, repetitions int32, isOwn func(brand int32) bool) (sources []source, cells []sourceCell) {
	index := make(map[source]int32, countPages(facts))
	var inAnswer []int32 // the sources of one answer
	for i := range facts {
		f := &facts[i]
		if len(f.Pages) == 0 {
			continue
		}
		no := (f.Ordinal - 1) / repetitions
		if len(cells) == 0 || cells[len(cells)-1].no != no {
			cells = append(cells, sourceCell{no: no})
		}
		// gap is 1 for an answer in a gap, by which its pages are multiplied.
		c, gap := &cells[len(cells)-1], int32(0)
		if f.isGap(isOwn) {
			gap = 1
		}
		c.pages += int32(len(f.Pages))
		c.gapPages += gap * int32(len(f.Pages))
		inAnswer = inAnswer[:0]
		for _, p := range f.Pages {
			if p.Host == "" {
				continue
			}
			key := source{p.Host, p.Owner}
			at, found := index[key]
			if !found {
				at = int32(len(sources))
				index[key], sources = at, append(sources, key)
			}
			s := c.source(at)
			s.pages++
			s.gap += gap
			if !slices.Contains(inAnswer, at) {
				inAnswer = append(inAnswer, at)
				s.answers++
				s.gapAnswers += gap
			}
		}
	}
	return sources, cells
}

// source returns the sum of a source, which stays valid until the next call.
func (c *sourceCell) source(at int32) *sourceSum {
	i, found := slices.BinarySearchFunc(c.sources, at, func(s sourceSum, n int32) int { return int(s.source - n) })
	if !found {
		c.sources = slices.Insert(c.sources, i, sourceSum{source: at})
	}
	return &c.sources[i]
}
