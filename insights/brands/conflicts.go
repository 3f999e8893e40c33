package brands

import (
	"fmt"
	"strconv"

	"aiv/insights/brands/match"
	"aiv/store"
)

// A ConflictError reports that other active brands of the account have names or domains of a brand.
type ConflictError struct {
	Conflicts []Conflict // in the order name, aliases, domains
}

// A Conflict is a name or domain of a brand that another active brand also has.
type Conflict struct {
	At     string // as in Fault
	Other  store.ID
	Domain bool // rather than a name
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another active brand has %s", e.Conflicts[0].At)
}

// Detail describes a conflict to customers.
func (c *Conflict) Detail() string { return c.detail(c.Other.Text("brand")) }

// detail describes a conflict with the brand that other names.
func (c *Conflict) detail(other string) string {
	of := "name"
	if c.Domain {
		of = "domain"
	}
	return "is also a " + of + " of " + other
}

// taken are the names and domains of active brands, by their keys.
type taken struct{ names, domains map[string]store.ID }

// newTaken returns the names and domains of brands.
func newTaken(active []Brand) *taken {
	t := &taken{make(map[string]store.ID), make(map[string]store.ID)}
	for i := range active {
		t.add(&active[i])
	}
	return t
}

// add adds the names and domains of a brand. Equal ones of an earlier brand are replaced, so call conflicts first.
func (t *taken) add(b *Brand) {
	eachName(b, func(_, key string) { t.names[key] = b.ID })
	for _, d := range b.Domains {
		t.domains[match.DomainKey(d)] = b.ID
	}
}

// conflicts returns the entries of a brand that other brands have.
func (t *taken) conflicts(b *Brand) (all []Conflict) {
	eachName(b, func(at, key string) {
		// Within one brand, names may repeat.
		if other, ok := t.names[key]; ok && other != b.ID {
			all = append(all, Conflict{At: at, Other: other})
		}
	})
	for i, d := range b.Domains {
		if other, ok := t.domains[match.DomainKey(d)]; ok && other != b.ID {
			all = append(all, Conflict{At: "domains/" + strconv.Itoa(i), Other: other, Domain: true})
		}
	}
	return all
}

// eachName calls f with the name and the aliases of a brand, and their keys.
func eachName(b *Brand, f func(at, key string)) {
	f("name", nameKey(b.Name))
	for i, alias := range b.Aliases {
		f("aliases/"+strconv.Itoa(i), nameKey(alias))
	}
}

// nameKey returns the key of a name that was checked.
func nameKey(name string) string {
	// With match_case, NameKey also accepts names of one character. The key does not depend on it.
	key, err := match.NameKey(name, true)
	if err != nil {
		return name // never of a stored name
	}
	return key
}
