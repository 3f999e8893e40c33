package match

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"aiv/store/storetest"
)

// TestOtherBrandsChangeNoResult checks that a result depends neither on the order of the brands, nor on brands whose names do
// not occur, nor on what was matched before.
func TestOtherBrandsChangeNoResult(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t) {
		m, text := c.matcher(), c.build(1)
		byID := func(brands []Brand) map[string]BrandResult {
			other, all := Compile(brands), make(map[string]BrandResult)
			for _, b := range other.Match(c.answer(other, text)).Brands {
				id := brands[b.Brand].ID
				b.Brand = 0
				all[id] = b
			}
			return all
		}
		first := m.Match(c.answer(m, text))
		storetest.Equal(t, first, m.Match(c.answer(m, text)), c.ID, ": matched twice")
		brands := slices.Clone(m.brands)
		slices.Reverse(brands)
		brands = append(brands, Brand{ID: "zz", Name: "Qzwxvkjhq", Aliases: []string{"Wqxzjk & Zqxw"}, Domains: []string{"qzwxvkjhq.example"}, Exclude: []string{"Qzwxvk Xqj"}})
		storetest.Equal(t, byID(m.brands), byID(brands), c.ID, ": with other brands")
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
		random, text := rand.New(rand.NewPCG(seed, 1)), ""
		for range random.IntN(20) {
			text += pick(random, textParts...)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip()
		}
		q := m.Question(text)
		r := m.Match(Answer{Text: text, Question: q})
		for _, b := range r.Brands {
			if b.Mentions > 0 && (b.First < 0 || b.First >= len(text)) || (b.Mentions > 0) != (b.Position > 0) {
				t.Errorf("brand %d: first %d, position %d", b.Brand, b.First, b.Position)
			}
		}
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
		NormalForm(text)
		// Units of which a fast test says that they have no address have none.
		s = newScratch(&asciiNormal)
		s.readBlocks(s.hide(text))
		s.readInline()
		for i := range s.units {
			u := &s.units[i]
			if fast := u.mayHaveAddress; !fast {
				u.mayHaveAddress = true
				if s.findAddresses(u); u.address {
					t.Fatalf("%q has an address", string(s.visible[u.start:u.end]))
				}
			}
		}
	})
}

// FuzzPageKey checks that the key of a page is of visible ASCII.
func FuzzPageKey(f *testing.F) {
	for _, c := range readCases(f) {
		for _, citation := range append(c.Citations, Citation{URL: c.A}, Citation{URL: c.B}) {
			f.Add(citation.URL)
		}
	}
	f.Fuzz(func(t *testing.T, url string) {
		key, ok := pageKey(url)
		if ok && strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q: key %q", url, key)
		}
	})
}

// FuzzSaved checks that no name and no domain makes the matcher panic.
func FuzzSaved(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add(c.Input)
		f.Add(c.Name)
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
