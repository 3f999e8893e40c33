package match

import "slices"

// A Brand is what an account measures. Names, aliases and excluded phrases that [NameKey] refuses have no effect.
type Brand struct {
	ID        string // orders brands that are otherwise equal
	Own       bool   // rather than a competitor
	Name      string
	Aliases   []string
	Domains   []string // as [Domain] returns them
	Exclude   []string
	MatchCase bool
}

// A Matcher finds a set of brands. It does not change, so goroutines may share it.
type Matcher struct {
	brands   []Brand        // as Compile got them, so that indexes of results are valid
	variants [][]string     // of each brand, those that are used
	names    []searchedName // what the tries and hosts refer to, by index
	trie     *trie          // of names, aliases and derived variants
	excluded *trie          // of excluded phrases
	ascii    [128]char      // asciiNormal, with what may begin with each
	starts   *startSet
	hosts    map[string][]int32 // host-shaped names by their normal form: indexes of names
	owners   owners
}

// A searchedName is a name, an alias, a derived variant or an excluded phrase. The tries store its index among the
// Matcher's names.
type searchedName struct {
	brand   int32 // index of the Matcher's brands
	kind    kind
	exclude bool
	written []rune // to find out whether an occurrence is spelled exactly so
}

// A kind is a kind of occurrence, in the order in which they win ties.
type kind uint8

const (
	kindName kind = iota
	kindAlias
	kindVariant
	kindDomain
)

// Compile prepares the search for an account's active brands. Indexes in results are indexes of brands.
func Compile(brands []Brand) *Matcher {
	m := &Matcher{
		brands:   slices.Clone(brands),
		variants: make([][]string, len(brands)),
		starts:   newStartSet(),
		hosts:    make(map[string][]int32),
	}
	// Excluded phrases have a separate trie, because they are searched before the names.
	t, excluded := newTrieBuilder(), newTrieBuilder()
	// NameKey refuses names and phrases that cannot be saved. They have no effect; see Brand.
	saved := make(map[string]bool) // keys of names and aliases
	for i, b := range m.brands {
		for k, name := range slices.Concat([]string{b.Name}, b.Aliases) {
			if key, err := NameKey(name, b.MatchCase); err == nil {
				saved[key] = true
				// k is 0 for the name and more for the aliases.
				m.add(t, searchedName{brand: int32(i), kind: min(kind(k), kindAlias)}, name)
			}
		}
		for _, phrase := range b.Exclude {
			if _, err := NameKey(phrase, b.MatchCase); err == nil {
				m.add(excluded, searchedName{brand: int32(i), exclude: true}, phrase)
			}
		}
	}
	for i, b := range m.brands { // after all names, because a variant that equals one of them is not used
		for _, name := range slices.Concat([]string{b.Name}, b.Aliases) {
			// The variant of an alias is used as well, once for each brand.
			variant := Variant(name)
			if key, err := NameKey(variant, true); err == nil && !saved[key] && !slices.Contains(m.variants[i], variant) {
				m.variants[i] = append(m.variants[i], variant)
				m.add(t, searchedName{brand: int32(i), kind: kindVariant}, variant)
			}
		}
	}
	// findFirsts reads both tries, so they are built first.
	m.trie, m.excluded = t.build(), excluded.build()
	m.findFirsts()
	m.addDomains()
	return m
}

// findFirsts notes for each ASCII character whether something that is searched may begin with it.
func (m *Matcher) findFirsts() {
	m.ascii = asciiNormal
	for i := range m.ascii {
		c := &m.ascii[i]
		// Names, excluded phrases and phrases of absence are searched from the same places.
		if len(m.trie.begin(c.r)) > 0 || len(m.excluded.begin(c.r)) > 0 || phrases().first(c.r) > 0 {
			c.traits |= mayBegin
		}
	}
}

// add adds a name to the search. An excluded phrase ignores match_case.
func (m *Matcher) add(t *trieBuilder, n searchedName, name string) {
	p := newPattern(name)
	n.written = p.name
	index := int32(len(m.names))
	m.names = append(m.names, n)
	// A host-shaped name is found in two ways: by the placeholder of a bare host, and in the trie where the text is no
	// host, such as "Kovalt.Com", whose last label mixes capitals and lower-case letters.
	if p.hostShaped {
		key := plain(p.chars)
		m.hosts[key] = append(m.hosts[key], index)
	}
	t.add(p, m.brands[n.brand].MatchCase && !n.exclude, index)
	m.starts.addPattern(p)
}

// Names returns what a brand is searched by: its name, its aliases, then the derived variants that are used.
func (m *Matcher) Names(brand int) []string {
	b := &m.brands[brand]
	return slices.Concat([]string{b.Name}, b.Aliases, m.variants[brand])
}

// An Answer is what is matched.
type Answer struct {
	Text      string    // Markdown or HTML, as the model wrote it
	Question  *Question // nil: unknown
	Citations []Citation
}

// A Citation is a source that an engine reported with an answer.
type Citation struct {
	URL   string
	Title string // "" if there is none
}

// Match finds the brands in an answer.
func (m *Matcher) Match(a Answer) Result {
	s := m.acquire()
	defer m.release(s)
	if len(m.brands) == 0 { // there is nothing to search for
		s.readBlocks(s.hide(a.Text))
		return Result{Empty: !s.hasProse(), Pages: m.findPages(s, a.Citations)}
	}
	// counts is indexed by brand. The buffer may have the counts of an earlier answer, even of another Matcher.
	s.counts = slices.Grow(s.counts[:0], len(m.brands))[:len(m.brands)]
	clear(s.counts)
	s.mentioned = s.mentioned[:0]
	r := Result{Empty: m.readNaming(s, a.Text)}
	m.eachUnit(s, a.Question, func(_ *unit, taken []occurrence) bool {
		s.count(taken)
		return true
	})
	r.Pages = m.findPages(s, a.Citations)
	r.Brands = s.results()
	return r
}

// read finds the visible prose of a text. Unlike readNaming it reads all blocks: the words of a question matter even
// where it names no brand.
func (s *scratch) read(text string) {
	s.readBlocks(s.hide(text))
	s.readUnits()
	s.units = s.dropSources()
}

// readNaming finds the visible prose of a text where it may name a brand, and reports whether there is none at all.
func (m *Matcher) readNaming(s *scratch, text string) (empty bool) {
	s.readBlocks(s.hide(text))
	empty = !s.hasProse()
	sources := s.mayEndWithSources() // if so, where the list begins depends on all blocks
	if !sources {
		s.blocks = slices.DeleteFunc(s.blocks, func(b block) bool { return !m.starts.mayBeIn(s.src[b.start:b.end]) })
	}
	s.readUnits()
	if sources {
		s.units = s.dropSources()
	}
	return empty
}

// readUnits finds the visible prose of the blocks.
func (s *scratch) readUnits() {
	s.readInline()
	s.hosts = s.hosts[:0]
	for i := range s.units {
		u := &s.units[i]
		s.findAddresses(u)
		s.dropLabels(u)
	}
}

// eachUnit calls f with the occurrences of each unit that has some, in the order of the text, until f returns false.
func (m *Matcher) eachUnit(s *scratch, q *Question, f func(u *unit, taken []occurrence) bool) {
	for i := range s.units {
		u := &s.units[i]
		chars := s.normalize(u, u.end)
		m.search(s, u, chars)
		if len(s.occurrences) == 0 {
			continue
		}
		// From here on the occurrences do not overlap. Flags are set only on what was taken.
		taken := s.resolve()
		s.flagAbsence(chars, taken)
		if q != nil {
			s.flagEcho(q, chars, taken)
		}
		if !f(u, taken) {
			return
		}
	}
}
