package match

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A found is an occurrence that is taken, as reference and Matcher both describe it. Units without one do not count,
// because the Matcher leaves out blocks that name no brand.
type found struct {
	Unit, Start, End int
	Brand            string
	Kind             kind
	Conflict         bool
	Absent, Echoed   bool
}

// TestSearchEqualsAnObviousOne compares the search with an obvious one: random brands in random texts.
func TestSearchEqualsAnObviousOne(t *testing.T) {
	t.Parallel()
	const seeds = 800
	occurrences := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 7))
		brands := randomBrands(random)
		text, question := randomText(random, brands), randomText(random, brands)
		m := Compile(brands)
		q := m.Question(question)
		s, all := m.acquire(), m.acquire()
		m.readNaming(s, text)
		var got []found
		units := 0
		m.eachUnit(s, q, func(_ *unit, taken []occurrence) bool {
			for _, o := range taken {
				got = append(got, found{units, int(o.start), int(o.end), brands[o.brand].ID, o.kind,
					o.conflict, o.absent, o.echoed})
			}
			if len(taken) > 0 {
				units++
			}
			return true
		})
		all.read(text)
		want := reference(m, all, referenceSequences(question))
		occurrences += len(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: brands %+v\ntext %q\nquestion %q\n(-want +got)\n%s", seed, brands, text, question, diff)
		}
	}
	if occurrences < seeds*5/3 {
		t.Errorf("only %d occurrences were compared", occurrences)
	}
}

// reference finds what is taken in the units of s without a trie, without counting sort and one rule after the other.
func reference(m *Matcher, s *scratch, sequences map[string]bool) (all []found) {
	units := 0
	for i := range s.units {
		u := &s.units[i]
		r := &referenceUnit{m: m, s: s, u: u, chars: slices.Clone(s.normalize(u, u.end))}
		r.findAll()
		taken := r.take()
		for _, o := range taken {
			all = append(all, found{units, int(o.start), int(o.end), m.brands[o.brand].ID, o.kind,
				o.conflict, r.absent(o), r.echoes(o, sequences)})
		}
		if len(taken) > 0 {
			units++
		}
	}
	return all
}

type referenceUnit struct {
	m     *Matcher
	s     *scratch
	u     *unit
	chars []char

	occurrences, excluded []occurrence
}

func (r *referenceUnit) findAll() {
	for start := range r.chars {
		for n, name := range r.m.names {
			p := newPattern(string(name.written))
			to := &r.occurrences
			if name.exclude {
				to = &r.excluded
			}
			for _, end := range r.ends(p, start, r.m.brands[name.brand].MatchCase && !name.exclude) {
				if r.bounded(start, end) {
					*to = append(*to, occurrence{start: int32(start), end: int32(end), length: int32(end - start),
						brand: name.brand, name: int32(n), kind: name.kind})
				}
			}
		}
		if c := r.chars[start]; c.isHost() && !r.s.hosts[-1-c.r].inLabel {
			h := r.s.hosts[-1-c.r]
			if brand, tie := r.owner(string(r.s.visible[h.start:h.end])); brand >= 0 {
				r.occurrences = append(r.occurrences, occurrence{start: int32(start), end: int32(start + 1), length: 1, brand: int32(brand), name: -1,
					kind: kindDomain, conflict: tie})
			}
		}
	}
}

// owner returns the brand that owns a host, by comparing all domains.
func (r *referenceUnit) owner(text string) (best int, tie bool) {
	host, _ := Hostname(text)
	best, bestDomain := -1, ""
	for i, b := range r.m.brands {
		for _, d := range b.Domains {
			saved, err := Domain(d)
			if err != nil || strings.Contains(saved, "/") || host != saved && !strings.HasSuffix(host, "."+saved) {
				continue
			}
			switch {
			case len(saved) > len(bestDomain):
				best, bestDomain, tie = i, saved, false
			case len(saved) == len(bestDomain) && best != i:
				tie = true
				if r.m.compareBrands(int32(i), int32(best)) < 0 {
					best = i
				}
			}
		}
	}
	return best, tie
}

// ends returns where a pattern that begins at start may end: it tries all spellings of all gaps.
func (r *referenceUnit) ends(p *pattern, start int, matchCase bool) (ends []int) {
	if r.chars[start].isHost() {
		if p.hostShaped && string(r.s.hostKey(&r.s.hosts[-1-r.chars[start].r])) == plain(p.chars) {
			return []int{start + 1}
		}
		return nil
	}
	if len(p.tokens) == 0 {
		return nil
	}
	rules := p.caseRules(matchCase)
	at := start
	if p.dot {
		if r.chars[at].r != '.' {
			return nil
		}
		at++
	}
	type state struct{ token, at, first int }
	states := []state{{0, at, at}}
	for len(states) > 0 {
		st := states[len(states)-1]
		states = states[:len(states)-1]
		tok := p.tokens[st.token]
		end := st.at
		ok := true
		for k := tok.start; k < tok.end; k++ {
			ok = ok && end < len(r.chars) && r.chars[end].r == p.chars[k].r && rules[k].allows(r.chars[end].isCapital())
			end++
		}
		if !ok {
			continue
		}
		if st.token+1 == len(p.tokens) {
			ends = append(ends, end)
			continue
		}
		next := p.tokens[st.token+1]
		own := plain(p.chars[tok.end:next.start])
		isAmp := func(i int) bool { return i >= 0 && i < len(p.tokens) && p.chars[p.tokens[i].start].r == '&' }
		gaps := map[string]bool{"": true}
		switch {
		case p.hostShaped:
			gaps = map[string]bool{own: true}
		case next.hump:
			for _, g := range []string{"-", "_", ".", "'", "·", "/"} {
				gaps[g] = true
			}
			if end+1 < len(r.chars) && r.chars[st.first].isCapital() && r.chars[end+1].isCapital() {
				gaps[" "] = true
			}
		case isAmp(st.token) || isAmp(st.token+1):
			gaps[" "], gaps[own] = true, true
		default:
			for _, g := range []string{" ", "-", "_", ".", "'", "·", "/", own} {
				gaps[g] = true
			}
			if strings.Contains(own, ".") {
				gaps[". "] = true
			}
		}
		for g := range gaps {
			if n := len([]rune(g)); r.text(end, end+n) == g {
				states = append(states, state{st.token + 1, end + n, end + n})
			}
		}
		if isAmp(st.token+1) && st.token+2 < len(p.tokens) && !isAmp(st.token) && r.letters(p, st.token, -1) >= 3 && r.letters(p, st.token+2, 1) >= 3 {
			for _, w := range []string{" and ", " und ", " et ", " y ", " e ", " og ", " och ", " en "} {
				if r.text(end, end+len(w)) == w {
					states = append(states, state{st.token + 2, end + len(w), end + len(w)})
				}
			}
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// text returns characters of the unit. Hosts become characters that are in no name.
func (r *referenceUnit) text(from, to int) string {
	chars := slices.Clone(r.chars[min(from, len(r.chars)):min(to, len(r.chars))])
	for i := range chars {
		if chars[i].isHost() {
			chars[i].r = '\u0001'
		}
	}
	return plain(chars)
}

// letters counts the letters of the whole run around a token's side.
func (r *referenceUnit) letters(p *pattern, i, step int) int {
	from, to := i, i
	for step < 0 && p.tokens[from].hump {
		from--
	}
	for step > 0 && to+1 < len(p.tokens) && p.tokens[to+1].hump {
		to++
	}
	text := ""
	for _, tok := range p.tokens[from : to+1] {
		text += plain(p.chars[tok.start:tok.end])
	}
	return countLetters(text)
}

// bounded applies the table of M7.
func (r *referenceUnit) bounded(start, end int) bool {
	if start > 0 && !separate(r.chars[start], r.chars[start-1]) {
		return false
	}
	if end == len(r.chars) {
		return true
	}
	edge, neighbour := r.chars[end-1], r.chars[end]
	switch {
	case neighbour.isMark():
		return false
	case edge.class() == hangul && neighbour.class() == hangul:
		tail := r.chars[end:]
		if at := slices.IndexFunc(tail, func(c char) bool { return c.class() != hangul }); at >= 0 {
			tail = tail[:at]
		}
		return particles[plain(tail)]
	}
	return separate(edge, neighbour)
}

// separate reports whether a name may end between its edge and its neighbour.
func separate(edge, neighbour char) bool {
	if edge.class() == other {
		return edge.r != neighbour.r
	}
	return edge.class() == free || edge.class() != neighbour.class()
}

// take applies M11 to each pair of occurrences.
func (r *referenceUnit) take() (taken []occurrence) {
	overlap := func(x, y occurrence) bool { return x.start < y.end && y.start < x.end }
	left := slices.DeleteFunc(r.occurrences, func(o occurrence) bool {
		return slices.ContainsFunc(r.excluded, func(e occurrence) bool {
			return e.brand == o.brand && overlap(e, o) && e.length >= o.length
		})
	})
	r.s.chars = append(r.s.chars[:0], r.chars...)
	slices.SortStableFunc(left, func(x, y occurrence) int {
		if x.length != y.length {
			return int(y.length - x.length)
		}
		if x.start != y.start {
			return int(x.start - y.start)
		}
		return r.m.compare(r.s, r.u, x, y)
	})
	for _, o := range left {
		if slices.ContainsFunc(taken, func(t occurrence) bool { return overlap(t, o) }) {
			continue
		}
		for _, l := range left {
			if o.kind != kindDomain && l.kind != kindDomain && l.brand != o.brand && l.start == o.start && l.end == o.end {
				o.conflict = true
			}
		}
		taken = append(taken, o)
	}
	slices.SortFunc(taken, func(x, y occurrence) int { return int(x.start - y.start) })
	return taken
}

// absent looks for each phrase before and behind an occurrence.
func (r *referenceUnit) absent(o occurrence) bool {
	return r.reaches(phrasesBefore, 0, int(o.start), func(from, to int) (int, int, int) { return to, int(o.start), maxSpacesBehindPhrase }) ||
		r.reaches(phrasesAfter, int(o.end), len(r.chars), func(from, to int) (int, int, int) { return int(o.end), from, maxSpacesBeforePhrase })
}

func (r *referenceUnit) reaches(patterns []string, lo, hi int, between func(from, to int) (int, int, int)) bool {
	for from := lo; from < hi; from++ {
		for to := from + 1; to <= min(hi, from+70); to++ {
			if !r.isWhole(from, to) || !phraseSet(patterns)[r.text(from, to)] {
				continue
			}
			a, b, most := between(from, to)
			spaces, stopped := 0, false
			for i := a; i < b; i++ {
				if r.chars[i].r == ' ' {
					spaces++
				}
				stopped = stopped || endsSentence(r.chars, i)
				for k := i + 1; k <= b; k++ {
					stopped = stopped || r.isWhole(i, k) && slices.Contains(turnWords, r.text(i, k))
				}
			}
			if spaces <= most && !stopped {
				return true
			}
		}
	}
	return false
}

func (r *referenceUnit) isWhole(from, to int) bool {
	return (from == 0 || r.chars[from-1].class() != word) && (to == len(r.chars) || r.chars[to].class() != word)
}

var phraseSets = map[string]map[string]bool{}

// phraseSet expands the choices of patterns.
func phraseSet(patterns []string) map[string]bool {
	if phraseSets[patterns[0]] == nil {
		set := make(map[string]bool)
		for _, p := range patterns {
			for _, phrase := range expandChoices(p) {
				set[phrase] = true
			}
		}
		phraseSets[patterns[0]] = set
	}
	return phraseSets[patterns[0]]
}

func expandChoices(p string) []string {
	closing := strings.IndexByte(p, ')')
	if closing < 0 {
		return []string{p}
	}
	opening := strings.LastIndexByte(p[:closing], '(')
	// A choice inside of another one: its alternatives are expanded within the outer alternative.
	var all []string
	for alternative := range strings.SplitSeq(p[opening+1:closing], "|") {
		all = append(all, expandChoices(p[:opening]+strings.ReplaceAll(alternative, "|", "")+p[closing+1:])...)
	}
	return all
}

func referenceSequences(question string) map[string]bool {
	s := newScratch(&asciiNormal)
	s.read(question)
	sequences := make(map[string]bool)
	for i := range s.units {
		u := &s.units[i]
		words, _ := referenceWords(s, slices.Clone(s.normalize(u, u.end)))
		for k := range max(len(words)-3, 0) {
			sequences[strings.Join(words[k:k+4], " ")] = true
		}
	}
	return sequences
}

func referenceWords(s *scratch, chars []char) (words []string, at []int) {
	inWord := false
	for i, c := range chars {
		switch {
		case c.isHost():
			words, at, inWord = append(words, string(s.hostKey(&s.hosts[-1-c.r]))), append(at, i), false
		case isLetter(c.r) || isMark(c.r) || isDigit(c.r):
			if !inWord {
				words, at = append(words, ""), append(at, i)
			}
			words[len(words)-1] += string(c.r)
			inWord = true
		default:
			inWord = false
		}
	}
	return words, at
}

func (r *referenceUnit) echoes(o occurrence, sequences map[string]bool) bool {
	words, at := referenceWords(r.s, r.chars)
	for k := range words {
		length := len([]rune(words[k]))
		if r.chars[at[k]].isHost() {
			length = 1
		}
		if at[k] >= int(o.end) || at[k]+length <= int(o.start) {
			continue
		}
		echoed := false
		for from := max(k-3, 0); from <= k && from+4 <= len(words); from++ {
			echoed = echoed || sequences[strings.Join(words[from:from+4], " ")]
		}
		if !echoed {
			return false
		}
	}
	return true
}

// Parts of random names and texts: scripts, humps, marks, separators, legal forms and hosts.
var (
	nameParts = []string{"Kov", "kov", "Alt", "alt", "É", "é", "e\u0301", "ß", "ss", "SS", "中", "京橙", "あ", "ライノ", "ノ", "코발트", "삼", "नी", "नील", "Май", "ё", "2", "7",
		"B", "b", "Hub", "Drift", "HubDrift", "HubDrift", "iQ", "IQ", "+", "#", "@", "&", " & ", "&", " ", " ", "-", ".", "'", "·", "/", "_", ", ", " - ", "! ", ".com", ".io", "Inc", " GmbH", " Co.", "Ⓕ", "ﬁ", "İ"}
	textParts = []string{" ", " ", " ", " ", "\n", "\n\n", ". ", ".", ", ", "! ", "; ", "**", "*", "_", "`", "[", "](u)", "](https://x.com)", "[1](u)", "<br>", "<p>", "|", "\n- ", "\n> ", "&amp;",
		" and ", " und ", " y ", "https://kov.com/a", "kov.com", "alt.io", "a@kov.com", "는", "에서는", "이라", "I could not find ", "no information about ", " does not appear in the results",
		" but ", " yet ", " one two three ", " one two three four five six seven eight nine ten ", "I could not find", "x", "hub Drift", "Hub drift", "Hub Drift", " however ", "'s", "\u0301", "\u200b", "-", "/", "'", "’", "+", "&", "#", "@", "(", ")", "2", "中", "の", "ー"}
)

func randomName(random *rand.Rand) string {
	var name strings.Builder
	for range 1 + random.IntN(4) {
		name.WriteString(pick(random, nameParts...))
	}
	return name.String()
}

func randomBrands(random *rand.Rand) []Brand {
	brands := make([]Brand, 1+random.IntN(5))
	for i := range brands {
		b := &brands[i]
		*b = Brand{ID: string(rune('a' + (i*3+1)%7)), Own: random.IntN(2) == 0, Name: randomName(random), MatchCase: random.IntN(4) == 0}
		for range random.IntN(3) {
			b.Aliases = append(b.Aliases, randomName(random))
		}
		for range random.IntN(2) {
			b.Exclude = append(b.Exclude, randomName(random))
		}
		for range random.IntN(2) {
			b.Domains = append(b.Domains, pick(random, "kov.com", "alt.io", "a.kov.com", "com.io", "kov.com/a"))
		}
	}
	return brands
}

func randomText(random *rand.Rand, brands []Brand) string {
	var names []string
	for _, b := range brands {
		names = append(append(append(names, b.Name), b.Aliases...), b.Exclude...)
	}
	var text strings.Builder
	for range random.IntN(30) {
		switch random.IntN(5) {
		case 0, 1:
			name := pick(random, names...)
			switch random.IntN(6) {
			case 0:
				name = strings.ToUpper(name)
			case 1:
				name = strings.ToLower(name)
			case 2:
				name = strings.ReplaceAll(name, " ", pick(random, "", "-", "_", ".", ". ", "  "))
			}
			text.WriteString(name)
		case 2:
			text.WriteString(pick(random, nameParts...))
		default:
			text.WriteString(pick(random, textParts...))
		}
		if random.IntN(3) == 0 {
			text.WriteString(" ")
		}
	}
	if random.IntN(4) == 0 { // a list of sources, or what resembles one
		text.WriteString(pick(random, "\n\n", "\n- ", "<br>", "") + pick(random, "**", "[", "É ", "![a](b) ", "· ", "`", "") +
			pick(random, "Sources", "Works cited", "Fonti", "quelle", "Works*cited*") +
			pick(random, ":", "", "](u)") + pick(random, "\n\n", " ", "\n\n! ·\n\n") +
			pick(random, "[Kov](https://kov.com)", "kov.com", "Kov", "- Alt [a](u)\n- <https://x.com>", "- [Kov](u)\n\n【1†a】"))
	}
	return text.String()
}
