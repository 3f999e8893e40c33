package match

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A testCase is a line of testdata/measure/*.jsonl: a public case of AIVM-1.0.
type testCase struct {
	ID, Kind, Rule, Why string

	// kinds answer and sample
	Brands    []caseBrand
	Question  *string
	Text      string
	Build     [][2]any // texts and how often each is repeated, in place of Text
	Citations []Citation
	Want      json.RawMessage // members of M13 by brand id; also what other kinds want
	Answer    map[string]any

	A, B  string // kind page
	Same  bool
	Input string // kinds domain and normal
	Name  string // kinds name and variant

	MatchCase bool `json:"match_case"`
}

type caseBrand struct {
	Brand
	Kind string
	Case bool `json:"match_case"`
}

// build returns the text of a case, n times as long if it has parts that are repeated.
func (c *testCase) build(n int) string {
	if c.Build == nil {
		return c.Text
	}
	var b strings.Builder
	for _, part := range c.Build {
		times := int(part[1].(float64))
		if times > 1 {
			times *= n
		}
		b.WriteString(strings.Repeat(part[0].(string), times))
	}
	return b.String()
}

func (c *testCase) matcher() *Matcher {
	brands := make([]Brand, len(c.Brands))
	for i, b := range c.Brands {
		brands[i] = b.Brand
		brands[i].Own, brands[i].MatchCase, brands[i].Domains = b.Kind == "own", b.Case, nil
		for _, d := range b.Domains {
			if saved, err := Domain(d); err == nil {
				brands[i].Domains = append(brands[i].Domains, saved)
			}
		}
	}
	return Compile(brands)
}

func (c *testCase) answer(m *Matcher, text string) Answer {
	a := Answer{Text: text, Citations: c.Citations}
	if c.Question != nil {
		a.Question = m.Question(*c.Question)
	}
	return a
}

func readCases(t testing.TB) (cases []testCase) {
	t.Helper()
	files, err := filepath.Glob("../../../testdata/measure/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		storetest.Must(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		for d.More() {
			var c testCase
			if err := d.Decode(&c); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			c.run(t)
			if t.Failed() {
				t.Logf("%s: %s", c.Rule, c.Why)
			}
		})
	}
}

func (c *testCase) run(t *testing.T) {
	switch c.Kind {
	case "answer":
		m := c.matcher()
		text := c.build(1)
		a := c.answer(m, text)
		r := m.Match(a)
		var want map[string]map[string]any
		storetest.Must(t, json.Unmarshal(c.Want, &want))
		for id, members := range want {
			i := slices.IndexFunc(c.Brands, func(b caseBrand) bool { return b.ID == id })
			compareMembers(t, id, membersOf(text, r, i), members)
		}
		branded := a.Question != nil && a.Question.Branded()
		compareMembers(t, "answer", map[string]any{"empty": r.Empty, "branded": branded, "pages": len(r.Pages)}, c.Answer)
	case "page":
		a, okA := pageKey(c.A)
		b, okB := pageKey(c.B)
		if !okA || !okB || (a == b) != c.Same {
			t.Errorf("got keys %q (%v) and %q (%v), want equal: %v", a, okA, b, okB, c.Same)
		}
	case "domain":
		saved, _ := Domain(c.Input)
		c.compare(t, saved)
	case "sample":
		m := c.matcher()
		if got, ok := m.Sample(0, c.answer(m, c.build(1))); ok {
			c.compare(t, map[string]any{"matched": got.Matched, "excerpt": got.Excerpt, "flags": append([]string{}, got.Flags.Strings()...)})
		} else {
			c.compare(t, nil)
		}
	case "normal":
		c.compare(t, NormalForm(c.Input))
	case "variant":
		c.compare(t, Variant(c.Name))
	case "name":
		_, err := NameKey(c.Name, c.MatchCase)
		c.compare(t, err == nil)
	case "conflict":
		c.compare(t, c.conflict())
	default:
		t.Errorf("unknown kind %q", c.Kind)
	}
}

// pageKey returns the page key of a citation's URL, or false if it is not one.
func pageKey(url string) (key string, ok bool) {
	a, ok := readPage(url)
	return a.key(), ok
}

// compare compares a value with what the case wants, as JSON. "" is null.
func (c *testCase) compare(t *testing.T, got any) {
	t.Helper()
	var want any
	storetest.Must(t, json.Unmarshal(c.Want, &want))
	if got == "" {
		got = nil
	}
	compareMembers(t, c.ID, map[string]any{"want": got}, map[string]any{"want": want})
}

// conflict returns the ids of two brands with a common name or domain.
func (c *testCase) conflict() []string {
	owner := make(map[string]string)
	for _, cb := range c.Brands {
		var keys []string
		for _, name := range append([]string{cb.Name}, cb.Aliases...) {
			if key, err := NameKey(name, cb.Case); err == nil {
				keys = append(keys, "name "+key)
			}
		}
		for _, d := range cb.Domains {
			if saved, err := Domain(d); err == nil {
				keys = append(keys, "domain "+DomainKey(saved))
			}
		}
		for _, key := range keys {
			if id, found := owner[key]; found && id != cb.ID {
				return []string{id, cb.ID}
			}
			owner[key] = cb.ID
		}
	}
	return nil
}

// membersOf returns the members of M13 of a brand.
func membersOf(text string, r Result, brand int) map[string]any {
	b := BrandResult{Brand: brand, First: -1}
	if i := slices.IndexFunc(r.Brands, func(f BrandResult) bool { return f.Brand == brand }); i >= 0 {
		b = r.Brands[i]
	}
	members := map[string]any{"mentioned": b.Mentions > 0, "mentions": b.Mentions, "first": nil, "position": nil,
		"kinds": append([]string{}, b.Kinds.Strings()...), "flags": append([]string{}, b.Flags.Strings()...),
		"cited": b.Citations > 0, "citations": b.Citations, "first_citation": nil}
	if b.Mentions > 0 {
		members["first"], members["position"] = utf8.RuneCountInString(text[:b.First]), b.Position
	}
	if b.Citations > 0 {
		members["first_citation"] = b.FirstCitation
	}
	return members
}

// compareMembers reports each member of want that got does not have. It compares them as JSON.
func compareMembers(t *testing.T, name string, got, want map[string]any) {
	t.Helper()
	for member, w := range want {
		g, known := got[member]
		gotJSON, _ := json.Marshal(g)
		if wantJSON, _ := json.Marshal(w); !known || !bytes.Equal(gotJSON, wantJSON) {
			t.Errorf("%s: %s is %s, want %s", name, member, gotJSON, wantJSON)
		}
	}
}

// TestPublishedPhrases: METHODOLOGY.md lists the phrases of absence, and the words that end their reach.
func TestPublishedPhrases(t *testing.T) {
	published, err := os.ReadFile("../../METHODOLOGY.md")
	storetest.Must(t, err)
	for _, line := range append(slices.Concat(phrasesBefore, phrasesAfter), strings.Join(turnWords, " ")) {
		storetest.Equal(t, true, strings.Contains(string(published), "\n"+line+"\n"), "METHODOLOGY.md has the line ", line)
	}
}
