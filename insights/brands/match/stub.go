// Package match is a stand-in.
package match

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

type Brand struct {
	ID        string
	Own       bool
	Name      string
	Aliases   []string
	Domains   []string
	Exclude   []string
	MatchCase bool
}
type Citation struct{ URL, Title string }
type Question struct{}

func NewQuestion(string) *Question { return nil }

// Question returns a question that answers may repeat.
func (m *Matcher) Question(string) *Question { return nil }

type Answer struct {
	Text      string
	Question  *Question
	Citations []Citation
}
type Found struct {
	Brand, Mentions, Position, Citations int
	Flags                                int
}
type Page struct {
	Key, Host string
	Owner     int
}
type Result struct {
	Empty  bool
	Brands []Found
	Pages  []Page
}

// Flags is a set of flags.
type Flags uint8

// Strings returns the names of the flags, in order.
func (f Flags) Strings() []string { return nil }

// A Sample is the first occurrence of a brand in an answer.
type Sample struct {
	Matched string // its visible text
	Excerpt string // that with at most 80 visible characters on each side
	Flags   Flags
}

type Matcher struct{ brands []Brand }

func Compile(brands []Brand) *Matcher { return &Matcher{brands} }

func (m *Matcher) Match(a Answer) Result {
	r := Result{Empty: !strings.ContainsFunc(a.Text, isWord)}
	for _, c := range a.Citations {
		host, _, _ := strings.Cut(strings.TrimPrefix(c.URL, "https://"), "/")
		p := Page{Key: strings.TrimPrefix(c.URL, "https://"), Host: host, Owner: -1}
		for i, b := range m.brands {
			if slices.ContainsFunc(b.Domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) }) {
				p.Owner = i
			}
		}
		r.Pages = append(r.Pages, p)
	}
	for i := range m.brands {
		f := Found{Brand: i}
		if _, ok := m.Sample(i, a); ok {
			f.Mentions, f.Position = 1, 1
		}
		for _, p := range r.Pages {
			if p.Owner == i {
				f.Citations++
			}
		}
		if f.Mentions+f.Citations > 0 {
			r.Brands = append(r.Brands, f)
		}
	}
	return r
}

// Sample returns the first occurrence of a brand in an answer, flagged or not.
func (m *Matcher) Sample(brand int, a Answer) (s Sample, ok bool) {
	text := strings.Join(strings.Fields(a.Text), " ")
	first := len(text)
	for _, name := range m.Names(brand) {
		if i := strings.Index(strings.ToLower(text), strings.ToLower(name)); i >= 0 && i < first {
			first, s.Matched = i, text[i:i+len(name)]
		}
	}
	if s.Matched == "" {
		return s, false
	}
	s.Excerpt = text[max(0, first-80):min(len(text), first+len(s.Matched)+80)]
	return s, true
}

// Names returns what a brand is searched by: its name, its aliases, then the derived variants that are used.
func (m *Matcher) Names(brand int) []string {
	b := &m.brands[brand]
	return slices.Concat([]string{b.Name}, b.Aliases)
}

func NormalForm(s string) string { return s }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// NameKey checks a name, an alias or an excluded phrase, and returns its key.
func NameKey(name string, matchCase bool) (key string, err error) {
	letters := 0
	key = strings.Map(func(r rune) rune {
		if isWord(r) {
			letters++
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	switch {
	case letters == 0:
		return "", errors.New("must contain a letter or a digit")
	case letters < 2 && !matchCase:
		return "", errors.New("must contain two letters or digits, unless match_case is true")
	}
	return key, nil
}

// Domain returns the form in which a brand's domain is saved.
func Domain(input string) (saved string, err error) {
	text := strings.TrimSpace(input)
	if _, after, ok := strings.Cut(text, "://"); ok {
		text = after
	}
	host, path, _ := strings.Cut(text, "/")
	switch {
	case host == "":
		return "", errors.New("must be a host such as example.com, or a host and a path")
	case !strings.Contains(host, "."):
		return "", errors.New("must be a host of its own, not one label")
	case strings.Contains(text, "@"):
		return "", errors.New("must not contain @ before the path")
	}
	return strings.TrimRight(strings.ToLower(host)+"/"+path, "/"), nil
}

// DomainKey returns the form in which domains are compared.
func DomainKey(saved string) string { return strings.ToLower(saved) }
