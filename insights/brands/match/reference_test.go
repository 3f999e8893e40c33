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
}

// TestSearchEqualsAnObviousOne compares the search with an obvious one: random brands in random texts. The flags of M12
// are in the public cases.
func TestSearchEqualsAnObviousOne(t *testing.T) {
	t.Parallel()
	const seeds = 800
	occurrences := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 7))
		brands := randomBrands(random)
		text := randomText(random, brands)
		m := Compile(brands)
		s, all := m.acquire(), m.acquire()
		m.readNaming(s, text)
		var got []found
		units := 0
		m.eachUnit(s, nil, func(_ *unit, taken []occurrence) bool {
			for _, o := range taken {
				got = append(got, newFound(m, units, o))
			}
			if len(taken) > 0 {
				units++
			}
			return true
		})
		all.read(text)
		want := reference(m, all)
		occurrences += len(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: brands %+v\ntext %q\n(-want +got)\n%s", seed, brands, text, diff)
		}
	}
	if occurrences < seeds*5/3 {
		t.Errorf("only %d occurrences were compared", occurrences)
	}
}

func newFound(m *Matcher, unit int, o occurrence) found {
	return found{unit, int(o.start), int(o.end), m.brands[o.brand].ID, o.kind, o.conflict}
}

// reference finds what is taken in the units of s without a trie, without counting sort and one rule after the other.
func reference(m *Matcher, s *scratch) (all []found) {
	units := 0
	for i := range s.units {
		u := &s.units[i]
		r := &referenceUnit{m: m, s: s, u: u, chars: slices.Clone(s.normalize(u, u.end))}
		r.findAll()
		taken := r.take()
		for _, o := range taken {
			all = append(all, newFound(m, units, o))
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
			end := r.end(p, start, r.m.brands[name.brand].MatchCase && !name.exclude)
			if end >= 0 && r.bounded(start, end) {
				*to = append(*to, occurrence{start: int32(start), end: int32(end), length: int32(end - start),
					brand: name.brand, name: int32(n), kind: name.kind})
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
	best, length := -1, 0
	for i, b := range r.m.brands {
		for _, d := range b.Domains {
			if len(d) < length || strings.Contains(d, "/") || host != d && !strings.HasSuffix(host, "."+d) {
				continue
			}
			tie = len(d) == length && (tie || best != i)
			if len(d) > length || r.m.compareBrands(int32(i), int32(best)) < 0 {
				best = i
			}
			length = len(d)
		}
	}
	return best, tie
}

// end returns where a pattern that begins at start ends, or -1.
func (r *referenceUnit) end(p *pattern, start int, matchCase bool) int {
	switch {
	case r.chars[start].isHost():
		if p.hostShaped && string(r.s.hostKey(&r.s.hosts[-1-r.chars[start].r])) == plain(p.chars) {
			return start + 1
		}
		return -1
	case len(p.tokens) == 0 || p.dot && r.chars[start].r != '.':
		return -1
	case p.dot:
		start++
	}
	return r.endOf(p, p.caseRules(matchCase), 0, start)
}

// endOf returns where the tokens of a pattern from one on end, if that one begins at first. It tries all spellings of
// gaps: as no word character begins one, only one can be right.
func (r *referenceUnit) endOf(p *pattern, rules []caseRule, token, first int) int {
	tok, end := p.tokens[token], first
	for k := tok.start; k < tok.end; k, end = k+1, end+1 {
		if end == len(r.chars) || r.chars[end].r != p.chars[k].r || !rules[k].allows(r.chars[end].isCapital()) {
			return -1
		}
	}
	if token+1 == len(p.tokens) {
		return end
	}
	next := p.tokens[token+1]
	own := plain(p.chars[tok.end:next.start])
	isAmp := func(i int) bool { return i >= 0 && i < len(p.tokens) && p.chars[p.tokens[i].start].r == '&' }
	gaps := []string{"", own}
	switch {
	case p.hostShaped:
		gaps = []string{own}
	case isAmp(token) || isAmp(token+1):
		gaps = append(gaps, " ")
	case next.hump:
		gaps = []string{"", "-", "_", ".", "'", "·", "/"}
		if end+1 < len(r.chars) && r.chars[first].isCapital() && r.chars[end+1].isCapital() {
			gaps = append(gaps, " ")
		}
	default:
		gaps = append(gaps, " ", "-", "_", ".", "'", "·", "/")
		if strings.Contains(own, ".") {
			gaps = append(gaps, ". ")
		}
	}
	steps := make(map[string]int) // to the next token
	for _, gap := range gaps {
		steps[gap] = 1
	}
	if isAmp(token+1) && token+2 < len(p.tokens) && !isAmp(token) && r.letters(p, token, -1) >= 3 && r.letters(p, token+2, 1) >= 3 {
		for _, word := range []string{"and", "und", "et", "y", "e", "og", "och", "en"} {
			steps[" "+word+" "] = 2
		}
	}
	for gap, step := range steps {
		if behind := end + len([]rune(gap)); r.text(end, behind) == gap {
			if end := r.endOf(p, rules, token+step, behind); end >= 0 {
				return end
			}
		}
	}
	return -1
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
	return countLetters(plain(p.chars[p.tokens[from].start:p.tokens[to].end])) // between them are no letters
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

// Parts of random names and texts: scripts, humps, marks, separators, legal forms and hosts.
var (
	nameParts = []string{"Kov", "kov", "Alt", "alt", "É", "é", "e\u0301", "ß", "ss", "SS", "中", "京橙", "あ", "ライノ", "ノ", "코발트", "삼", "नी", "नील", "Май", "ё", "2", "7",
		"B", "b", "Hub", "Drift", "HubDrift", "HubDrift", "iQ", "IQ", "+", "#", "@", "&", " & ", "&", " ", " ", "-", ".", "'", "·", "/", "_", ", ", " - ", "! ", ".com", ".io", "Inc", " GmbH", " Co.", "Ⓕ", "ﬁ", "İ"}
	textParts = []string{" ", " ", " ", " ", "\n", "\n\n", ". ", ".", ", ", "! ", "; ", "**", "*", "_", "`", "[", "](u)", "](https://x.com)", "[1](u)", "<br>", "<p>", "|", "\n- ", "\n> ", "&amp;",
		" and ", " und ", " y ", "https://kov.com/a", "kov.com", "alt.io", "a@kov.com", "는", "에서는", "이라", "I could not find ", "no information about ", " does not appear in the results",
		" but ", " yet ", " one two three ", " one two three four five six seven eight nine ten ", "I could not find", "x", "hub Drift", "Hub drift", "Hub Drift", " however ", "'s", "\u0301", "\u200b", "-", "/", "'", "’", "+", "&", "#", "@", "(", ")", "2", "中", "の", "ー"}
)

func randomName(random *rand.Rand) (name string) {
	for range 1 + random.IntN(4) {
		name += pick(random, nameParts...)
	}
	return name
}

func randomBrands(random *rand.Rand) []Brand {
	brands := make([]Brand, 1+random.IntN(5))
	for i := range brands {
		b := &brands[i]
		*b = Brand{ID: string(rune('a' + (i*3+1)%7)), Own: random.IntN(2) == 0, Name: randomName(random), MatchCase: random.IntN(4) == 0}
		for range random.IntN(3) {
			b.Aliases = append(b.Aliases, pick(random, randomName(random), randomName(random), "kov.com Inc", "kov.com GmbH"))
		}
		if random.IntN(2) == 0 {
			b.Exclude = []string{randomName(random)}
		}
		if random.IntN(2) == 0 {
			b.Domains = []string{pick(random, "kov.com", "alt.io", "a.kov.com", "kov.com/a")}
		}
	}
	return brands
}

func randomText(random *rand.Rand, brands []Brand) string {
	var names []string
	for _, b := range brands {
		names = slices.Concat(names, []string{b.Name}, b.Aliases, b.Exclude)
	}
	var text strings.Builder
	for range random.IntN(30) {
		name := pick(random, names...)
		switch random.IntN(10) {
		case 0, 1:
			text.WriteString(name)
		case 2:
			text.WriteString(pick(random, strings.ToUpper(name), strings.ToLower(name)))
		case 3:
			text.WriteString(strings.ReplaceAll(name, " ", pick(random, "", "-", "_", ".", ". ", "  ")))
		case 4, 5:
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
