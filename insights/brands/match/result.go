package match

// A Result is what an answer mentions and cites (M13).
type Result struct {
	Empty  bool // the answer has no visible prose
	Brands []BrandResult
	Pages  []Page
}

// A BrandResult is what an answer shows of a brand. Results have only brands that occur, flagged or not, or are
// cited, by Brand.
type BrandResult struct {
	Brand         int // index of the brands that were compiled
	Mentions      int // counted occurrences
	First         int // offset of the first of them in bytes; -1: none
	Position      int // rank of First among the brands mentioned, from 1; 0: not mentioned
	Kinds         Kinds
	Flags         Flags
	Citations     int // pages of the answer that the brand owns
	FirstCitation int // position of the first of them in the answer's citations, from 1; 0: none
}

// Kinds is a set of kinds of counted occurrences.
type Kinds uint8

const (
	Name       Kinds = 1 << iota
	Alias            // or a derived variant
	DomainName       // a bare host
)

// Flags is a set of flags.
type Flags uint8

const (
	Absence  Flags = 1 << iota // the answer says that it knows nothing of the name
	Conflict                   // another brand has an equal name or domain
	Echo                       // the answer repeats the question
)

// Strings returns the names of the kinds, in order.
func (k Kinds) Strings() []string { return setStrings(uint8(k), "name", "alias", "domain") }

// Strings returns the names of the flags, in order.
func (f Flags) Strings() []string { return setStrings(uint8(f), "absence", "conflict", "echo") }

// setStrings returns the names of the bits of a set; names[i] is the name of bit i.
func setStrings(set uint8, names ...string) []string {
	list := make([]string, 0, len(names))
	for i, name := range names {
		if set&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// counts reports whether an occurrence is a mention.
func (o *occurrence) counts() bool { return !o.absent && !o.echoed }

// flags returns the flags of an occurrence itself.
func (o *occurrence) flags() (f Flags) {
	if o.absent {
		f |= Absence
	}
	if o.echoed {
		f |= Echo
	}
	return f
}

// A count is what was found of a brand so far.
type count struct {
	mentions      int // counted occurrences
	first         int // index in the text of the first mention
	position      int // 0: not mentioned
	kinds         Kinds
	flags         Flags
	citations     int
	firstCitation int
	found         bool // it has an occurrence, flagged or not, or a page
}

// count adds the occurrences of a unit. Units come in the order of the text, so the first mention that is counted is
// the first of all.
func (s *scratch) count(taken []occurrence) {
	for i := range taken {
		o := &taken[i]
		c := &s.counts[o.brand]
		c.found = true
		c.flags |= o.flags()
		if o.conflict {
			c.flags |= Conflict
		}
		if !o.counts() {
			continue
		}
		if c.mentions == 0 {
			c.first = s.textIndex(s.charOrigin(o.start))
			s.mentioned = append(s.mentioned, o.brand)
		}
		c.mentions++
		switch o.kind {
		case kindName:
			c.kinds |= Name
		case kindAlias, kindVariant:
			c.kinds |= Alias
		case kindDomain:
			c.kinds |= DomainName
		}
	}
}

// results returns the counts of the brands that were found. It also ranks the brands mentioned. Each brand with
// mentions is in s.mentioned once, in the order of its first mention.
func (s *scratch) results() []BrandResult {
	n := 0
	for i := range s.counts {
		if s.counts[i].found {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	at, position := -1, 0
	for rank, brand := range s.mentioned {
		c := &s.counts[brand]
		// Brands with the same offset share a rank. This happens where one character becomes several, as ℀ does.
		if c.first != at {
			at, position = c.first, rank+1
		}
		c.position = position
	}
	results := make([]BrandResult, 0, n)
	for i := range s.counts {
		c := &s.counts[i]
		if !c.found {
			continue
		}
		first := -1
		if c.mentions > 0 {
			first = c.first
		}
		results = append(results, BrandResult{
			Brand: i, Mentions: c.mentions, First: first, Position: c.position, Kinds: c.kinds, Flags: c.flags,
			Citations: c.citations, FirstCitation: c.firstCitation,
		})
	}
	return results
}
