package brands

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"aiv/insights/brands/match"
)

// A Change has the members of a brand that change; nil: unchanged. In a new brand the members that are nil have their
// defaults.
type Change struct {
	Kind      *string
	Name      *string
	Aliases   []string
	Domains   []string
	Exclude   []string
	MatchCase *bool
	Status    *string
}

// A Fault is what is wrong with one text of a brand. Its detail is for customers.
type Fault struct {
	At     string // the member, and the index in a list: "name", "aliases/0"
	Detail string
}

// Check returns the faults of a change's texts, at most one of each, and replaces the domains by the form in which they
// are saved. If the change does not set match_case, names are accepted that require it; Update checks them when it
// knows the brand.
func (c *Change) Check() (faults []Fault) {
	// A name of one character is valid with match_case only.
	matchCase := c.MatchCase == nil || *c.MatchCase
	if c.Name != nil {
		if wrong := nameFault(*c.Name, matchCase); wrong != "" {
			faults = append(faults, Fault{"name", wrong})
		}
	}
	faults = append(faults, listFaults("aliases", c.Aliases, func(i int) string { return nameFault(c.Aliases[i], matchCase) })...)
	c.Domains = slices.Clone(c.Domains) // the caller's stay as they are
	faults = append(faults, listFaults("domains", c.Domains, func(i int) string { return saveDomain(&c.Domains[i]) })...)
	return append(faults, listFaults("exclude", c.Exclude, func(i int) string { return nameFault(c.Exclude[i], matchCase) })...)
}

// listFaults checks the number of texts, each text by wrong, which may change it, and then that no two are equal.
func listFaults(member string, texts []string, wrong func(int) string) (faults []Fault) {
	if len(texts) > MaxTexts {
		return []Fault{{member, fmt.Sprintf("must have 0 to %d texts, not %d", MaxTexts, len(texts))}}
	}
	for i := range texts {
		detail := wrong(i)
		// Only a text that is valid is compared with the texts before it. Domains are compared in the form in which
		// they are saved.
		if detail == "" {
			if first := slices.Index(texts[:i], texts[i]); first >= 0 {
				detail = fmt.Sprintf("duplicates %s/%d", member, first)
			}
		}
		if detail != "" {
			faults = append(faults, Fault{member + "/" + strconv.Itoa(i), detail})
		}
	}
	return faults
}

// nameFault returns what is wrong with a name, an alias or an excluded phrase, or "".
func nameFault(text string, matchCase bool) string {
	if n := utf8.RuneCountInString(text); n < 1 || n > MaxName {
		return fmt.Sprintf("must have 1 to %d characters", MaxName)
	}
	if _, err := match.NameKey(text, matchCase); err != nil {
		return err.Error()
	}
	return ""
}

// saveDomain replaces a domain by the form in which it is saved, or returns what is wrong with it.
func saveDomain(text *string) string {
	if n := utf8.RuneCountInString(*text); n < 1 || n > MaxDomain {
		return fmt.Sprintf("must have 1 to %d characters", MaxDomain)
	}
	saved, err := match.Domain(*text)
	if err != nil {
		return err.Error()
	}
	*text = saved
	return ""
}

// apply returns a brand with the change. Names are checked again if they or match_case change: what is allowed depends
// on both.
func (c *Change) apply(b Brand) (Brand, []Fault) {
	// With match_case off, names that were valid so far may be too short.
	lostCase := b.MatchCase && c.MatchCase != nil && !*c.MatchCase
	set(&b.Kind, c.Kind)
	set(&b.Name, c.Name)
	setList(&b.Aliases, c.Aliases)
	setList(&b.Domains, c.Domains)
	setList(&b.Exclude, c.Exclude)
	set(&b.MatchCase, c.MatchCase)
	set(&b.Status, c.Status)
	// Check has accepted the texts by the rules of match_case.
	if b.MatchCase {
		return b, nil
	}
	all := Change{Name: &b.Name, Aliases: b.Aliases, Exclude: b.Exclude, MatchCase: &b.MatchCase}
	if !lostCase { // what is stored and does not change was valid
		all = Change{Name: c.Name, Aliases: c.Aliases, Exclude: c.Exclude, MatchCase: &b.MatchCase}
	}
	return b, all.Check()
}

// set replaces a member if the change has it.
func set[T any](to, v *T) {
	if v != nil {
		*to = *v
	}
}

// setList is set for a list; an empty list replaces, nil does not.
func setList(to *[]string, v []string) {
	if v != nil {
		*to = v
	}
}

// equal reports whether two states of a brand have the same members that customers set.
func (b *Brand) equal(other *Brand) bool {
	return b.Kind == other.Kind && b.Name == other.Name && slices.Equal(b.Aliases, other.Aliases) && slices.Equal(b.Domains, other.Domains) &&
		slices.Equal(b.Exclude, other.Exclude) && b.MatchCase == other.MatchCase && b.Status == other.Status
}
