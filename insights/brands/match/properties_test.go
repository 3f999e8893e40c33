package match

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// byID returns what a result has of each brand, whatever the order of the brands is.
func byID(brands []Brand, r Result) map[string]BrandResult {
	all := make(map[string]BrandResult)
	for _, b := range r.Brands {
		id := brands[b.Brand].ID
		b.Brand = 0
		all[id] = b
	}
	return all
}

// TestOtherBrandsChangeNoResult checks that a result depends neither on the order of the brands, nor on brands whose names do
// not occur, nor on what was matched before.
func TestOtherBrandsChangeNoResult(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t) {
		if c.Kind != "answer" {
			continue
		}
		m := c.matcher()
		text := c.build(1)
		want := m.Match(c.answer(m, text))
		if again := m.Match(c.answer(m, text)); !cmp.Equal(again, want) {
			t.Errorf("%s: matched twice: %s", c.ID, cmp.Diff(want, again))
		}
		brands := slices.Clone(m.brands)
		slices.Reverse(brands)
		brands = append(brands, Brand{ID: "zz", Name: "Qzwxvkjhq", Aliases: []string{"Wqxzjk & Zqxw"}, Domains: []string{"qzwxvkjhq.example"}, Exclude: []string{"Qzwxvk Xqj"}})
		other := Compile(brands)
		got := other.Match(c.answer(other, text))
		if diff := cmp.Diff(byID(m.brands, want), byID(brands, got)); diff != "" {
			t.Errorf("%s: with other brands: %s", c.ID, diff)
		}
	}
}

func TestSampleShowsTheOccurrence(t *testing.T) {
	t.Parallel()
	m := Compile([]Brand{{ID: "a", Name: "Kovalt"}, {ID: "b", Name: "Torvo IQ", Domains: []string{"torvo.com"}}})
	long := strings.Repeat("word ", 30)
	for text, want := range map[string]Sample{
		"**Kov**ált is [fine](https://x.com).":              {Matched: "Kovált", Excerpt: "Kovált is fine ."},
		"Title\n\nNo information about Kovalt.":             {Matched: "Kovalt", Excerpt: "No information about Kovalt.", Flags: Absence},
		long + "https://x.com  Kovalt` `" + long:            {Matched: "Kovalt", Excerpt: strings.TrimSpace(long[70:]) + " Kovalt " + strings.TrimSpace(long[:79])},
		"See [torvo.com](https://torvo.com), really":        {},
		"a kovalt: the question has kovalt: the question x": {Matched: "kovalt", Excerpt: "a kovalt: the question has kovalt: the question x", Flags: Echo},
	} {
		got, ok := m.Sample(0, Answer{Text: text, Question: m.Question("is a kovalt: the question has it")})
		if ok != (want.Matched != "") || !cmp.Equal(got, want) {
			t.Errorf("%q: %s", text, cmp.Diff(want, got))
		}
	}
	if got, _ := m.Sample(1, Answer{Text: "Visit torvo.com, or Torvo\nIQ"}); got.Matched != "torvo.com" {
		t.Errorf("got %+v", got)
	}
}

// FuzzMatch checks that no text makes the matcher panic, that offsets lie inside the text, that visible characters come
// from it in order, and that no address is overlooked.
func FuzzMatch(f *testing.F) {
	m := Compile([]Brand{{ID: "a", Own: true, Name: "Kovalt & Sons", Aliases: []string{"Kovalt", "中", "aB.co"}, Domains: []string{"kovalt.com", "co"}},
		{ID: "b", Name: "HubDrift GmbH", Aliases: []string{".a-b", "코발트", "नी"}, Exclude: []string{"Kovalt Street", "hub"}, MatchCase: true}})
	for _, c := range readCases(f) {
		if c.Kind == "answer" && c.Build == nil {
			f.Add(c.Text)
		}
	}
	for _, part := range hostileParts {
		f.Add(strings.Repeat(part, 3) + "kovalt.com " + part)
	}
	f.Add("see http://localhost for more")
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		f.Add(fuzzText(random))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip()
		}
		q := m.Question(text)
		r := m.Match(Answer{Text: text, Question: q})
		checkOffsets(t, text, r)
		for i := range m.brands {
			m.Sample(i, Answer{Text: text, Question: q})
		}
		s := newScratch(&asciiNormal)
		s.read(text)
		before := -1
		for i := range s.visible {
			at := s.textIndex(int32(i))
			if at < before || at >= len(text) || !utf8.RuneStart(text[at]) {
				t.Fatalf("visible character %d is of index %d, behind %d", i, at, before)
			}
			before = at
		}
		checkAddresses(t, text)
		NormalForm(text)
	})
}

// checkAddresses checks that units of which a fast test says that they have no address have none.
func checkAddresses(t *testing.T, text string) {
	t.Helper()
	s := newScratch(&asciiNormal)
	s.readBlocks(s.hide(text))
	s.readInline()
	for i := range s.units {
		u := &s.units[i]
		if u.mayHaveAddress {
			continue
		}
		u.mayHaveAddress = true
		if s.findAddresses(u); u.address {
			t.Fatalf("%q has an address", string(s.visible[u.start:u.end]))
		}
	}
}

func fuzzText(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(20) {
		b.WriteString(pick(random, textParts...))
	}
	return b.String()
}

// FuzzPageKey checks that the key of a page is the key of the page that it names.
func FuzzPageKey(f *testing.F) {
	for _, c := range readCases(f) {
		for _, citation := range c.Citations {
			f.Add(citation.URL)
		}
		if c.Kind == "page" {
			f.Add(c.A)
			f.Add(c.B)
		}
	}
	f.Fuzz(func(t *testing.T, url string) {
		key, ok := pageKey(url)
		if !ok {
			return
		}
		for i := range len(key) {
			if key[i] <= ' ' || key[i] > '~' {
				t.Fatalf("%q: key %q", url, key)
			}
		}
	})
}

// FuzzSaved checks that no name and no domain makes the matcher panic.
func FuzzSaved(f *testing.F) {
	for _, c := range readCases(f) {
		if c.Kind == "domain" {
			f.Add(c.Input)
		}
		if c.Name != "" {
			f.Add(c.Name)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 512 { // names and domains are short
			t.Skip()
		}
		var domains []string
		if saved, err := Domain(text); err == nil {
			domains = append(domains, saved)
		}
		if key, err := NameKey(text, false); err == nil && key == "" {
			t.Errorf("%q: no key", text)
		}
		Compile([]Brand{{ID: "a", Name: text, Aliases: []string{text}, Exclude: []string{text}, Domains: domains}}).Match(Answer{Text: text})
	})
}

// TestSavedDomains: a brand owns the pages below its domain as it is saved, also if the saved form would be read
// otherwise.
func TestSavedDomains(t *testing.T) {
	for input, urls := range map[string][]string{ // the first is the brand's, the second is not
		"www.www.kovalt.com":            {"https://www.www.kovalt.com/a", "https://kovalt.com/a"},
		"https://kovalt.internal/a://b": {"http://kovalt.internal/a://b/c", "http://kovalt.internal/a:/b"},
		"kovalt.com/ahoy!/":             {"https://kovalt.com/ahoy!/c", "https://kovalt.com/ahoy/c"},
	} {
		saved, err := Domain(input)
		r := Compile([]Brand{{Domains: []string{saved}}}).Match(Answer{Citations: []Citation{{URL: urls[0]}, {URL: urls[1]}}})
		if err != nil || len(r.Pages) != 2 || r.Pages[0].Owner != 0 || r.Pages[1].Owner != -1 {
			t.Errorf("%s, saved as %s: %v, pages %+v", input, saved, err, r.Pages)
		}
	}
}

// TestNamesThatBeginAtOnePlace: of the excluded phrases that begin at one place the longest decides, and a name that wins
// last has the conflict that its brand's other name had.
func TestNamesThatBeginAtOnePlace(t *testing.T) {
	for _, tt := range []struct {
		brands []Brand
		text   string
		want   []BrandResult
	}{
		{[]Brand{{Name: "Kov Lab", Exclude: []string{"Kov", "Kov Lab Rat"}}}, "Kov Lab Rat", nil},
		{[]Brand{{ID: "1", Name: "Kov_Lab"}, {ID: "0", Name: "Kov-Lab", Aliases: []string{"Kov.Lab"}}}, "Kov.Lab",
			[]BrandResult{{Brand: 1, Mentions: 1, Position: 1, Kinds: Alias, Flags: Conflict}}},
	} {
		got := Compile(tt.brands).Match(Answer{Text: tt.text}).Brands
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}
