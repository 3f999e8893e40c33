package match

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// A domain is a host that a brand owns, with all hosts below it, or only the pages below a path of them.
type domain struct {
	path  string // a pathKey, "" or begins with /
	brand int32
	tie   bool // another brand has an equal domain, which ranks behind this one
}

// owners finds the brand that owns a host or a page (M14). The domains of a host are ordered: the longest path
// first, then the brand that wins a tie.
type owners map[string][]domain

// addDomains fills m.owners, and adds the hosts to m.starts, as a bare host is an occurrence of its owner.
func (m *Matcher) addDomains() {
	m.owners = make(owners)
	for i, b := range m.brands {
		for _, d := range b.Domains {
			host, path := cutBefore(d, '/')
			m.owners[host] = append(m.owners[host], domain{path: pathKey(path), brand: int32(i)})
			m.starts.addDomain(host)
		}
	}
	for _, domains := range m.owners {
		slices.SortFunc(domains, func(x, y domain) int {
			// Equal domains are neighbours then, which the search for ties below uses.
			return cmp.Or(cmp.Compare(len(y.path), len(x.path)), strings.Compare(x.path, y.path),
				m.compareBrands(x.brand, y.brand))
		})
		for i := range domains {
			domains[i].tie = slices.ContainsFunc(domains[i+1:], func(d domain) bool {
				return d.path == domains[i].path && d.brand != domains[i].brand
			})
		}
	}
}

// compareBrands orders own brands before competitors, then by id.
func (m *Matcher) compareBrands(x, y int32) int {
	a, b := &m.brands[x], &m.brands[y]
	if a.Own != b.Own {
		if a.Own {
			return -1
		}
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}

// ofHost returns the domain that owns a host without a path.
func (o owners) ofHost(host []byte) (domain, bool) {
	// The longest host with a domain wins.
	for ; len(host) > 0; host = parent(host) {
		for _, d := range o[string(host)] {
			if d.path == "" {
				return d, true
			}
		}
	}
	return domain{}, false
}

// ofPage returns the domain that owns a page: one with a path, whatever its host, before one without.
func (o owners) ofPage(host, path string) (owner domain, owned bool) {
	// The key of the path is made only if a domain with a path is found.
	key := ""
	for h := []byte(host); len(h) > 0; h = parent(h) {
		for _, d := range o[string(h)] {
			if d.path == "" {
				if !owned {
					owner, owned = d, true
				}
				break // it is after those with a path
			}
			if key == "" {
				key = pathKey(path)
			}
			if rest, ok := strings.CutPrefix(key, d.path); ok && (rest == "" || rest[0] == '/') {
				return d, true
			}
		}
	}
	return owner, owned
}

// parent returns what follows the first dot.
func parent(host []byte) []byte {
	if i := bytes.IndexByte(host, '.'); i >= 0 {
		return host[i+1:]
	}
	return nil
}
