package match

import (
	"slices"
	"strings"
)

// A Page is a page that an answer cites, once for each page key.
type Page struct {
	Key      string
	Host     string // of the key, without port and brackets; for an opaque redirector the host of the title, or ""
	Owner    int    // index of the brands that were compiled; -1: none
	Position int    // of the first citation with this key, from 1
}

// fewCitations is the number of citations up to which a search among the pages takes less time than a map.
const fewCitations = 16

// findPages returns the pages that citations lead to, and counts those that brands own (M14, M15).
func (m *Matcher) findPages(s *scratch, citations []Citation) []Page {
	if len(citations) == 0 {
		return nil
	}
	pages := make([]Page, 0, len(citations))
	var known map[string]struct{} // keys; nil: there are few
	if len(citations) > fewCitations {
		known = make(map[string]struct{}, len(citations))
	}
	for i, c := range citations {
		// What is no citation still counts in the positions of the citations after it.
		a, ok := readPage(c.URL)
		if !ok {
			continue
		}
		// The key has the host without a prefix for phones. The owner is found by the full host.
		page := Page{Key: a.key(), Host: a.pageHost(), Owner: -1, Position: i + 1}
		if known == nil {
			if slices.ContainsFunc(pages, func(p Page) bool { return p.Key == page.Key }) {
				continue
			}
		} else {
			if _, found := known[page.Key]; found {
				continue
			}
			known[page.Key] = struct{}{}
		}
		owner, owned := domain{}, false
		// The URL of an opaque redirector does not tell the page. The title of the citation may be the page's host.
		if a.isOpaque() {
			if page.Host = titleHost(c.Title); page.Host != "" {
				owner, owned = m.owners.ofHost([]byte(page.Host))
			}
		} else {
			owner, owned = m.owners.ofPage(a.host, a.path)
		}
		if owned {
			page.Owner = int(owner.brand)
			s.cite(owner, page.Position)
		}
		pages = append(pages, page)
	}
	return pages
}

// cite counts a page of a brand.
func (s *scratch) cite(owner domain, position int) {
	c := &s.counts[owner.brand]
	c.found = true
	if owner.tie {
		c.flags |= Conflict
	}
	if c.citations == 0 {
		c.firstCitation = position
	}
	c.citations++
}

// titleHost returns the host that a title is as a whole, or "".
func titleHost(title string) string {
	title = strings.TrimFunc(title, isSpace)
	if !isHost(title) {
		return ""
	}
	host, _ := Hostname(title)
	return host
}
