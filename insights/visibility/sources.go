package visibility

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"aiv/insights/brands"
	"aiv/store"
)

// A SourceQuery asks for the sources that answers cite.
type SourceQuery struct {
	Filter
	ByPage bool      // rows are pages instead of hosts
	Owner  string    // own, competitor or other; empty: all
	Brand  *store.ID // the owner
	Gap    bool      // only answers that mention a competitor and no own brand
}

// Sources are the rows of a SourceQuery, all of them in order.
type Sources struct {
	Answers Answers // before Gap
	Rows    []SourceRow
}

// A SourceRow is a host with an owner, or a page.
type SourceRow struct {
	Host              string
	Page              string // the page key; empty: the row is a host
	Owner             string // own, competitor or other
	Brand             *store.ID
	Answers           int64 // ok answers that cite it
	CitationShare     Share
	Models, Questions int
	First, Last       time.Time // the creation of the first and the last run that cite it
}

// The owners of sources.
const (
	OwnerOwn        = brands.Own
	OwnerCompetitor = brands.Competitor
	OwnerOther      = "other"
)

// A citing sums the citations of one row.
type citing struct {
	answers, pages    int64
	models, questions set
	first, last       time.Time
}

// A set is a set of small numbers.
type set []uint64

func (s *set) add(n int32) {
	for int(n)>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n>>6] |= 1 << (n & 63)
}

func (s set) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// A rowKey identifies a row.
type rowKey struct {
	source
	page string
}

// sourceTable collects the rows.
type sourceTable struct {
	query             *SourceQuery
	brands            map[int32]*brands.Brand // active, by number
	rows              map[rowKey]*citing
	pages             int64 // all, also those without a host
	models, questions map[string]int32
}

func newSourceTable(q *SourceQuery, active []brands.Brand) *sourceTable {
	t := &sourceTable{query: q, brands: make(map[int32]*brands.Brand), rows: make(map[rowKey]*citing),
		models: make(map[string]int32), questions: make(map[string]int32)}
	for i := range active {
		t.brands[active[i].Number] = &active[i]
	}
	return t
}

func number(of map[string]int32, text string) int32 {
	n, found := of[text]
	if !found {
		n = int32(len(of))
		of[text] = n
	}
	return n
}

// sourcesOf returns the numbers of the models and questions of a run.
func (t *sourceTable) numbers(r *run) (models, questions []int32) {
	for _, m := range r.models {
		models = append(models, number(t.models, m))
	}
	for _, q := range r.questions {
		questions = append(questions, number(t.questions, q))
	}
	return models, questions
}

// row returns the sums of a source or page. The pages of a brand that is not active have no owner.
func (t *sourceTable) row(s source, page string) *citing {
	if s.owner != 0 && t.brands[s.owner] == nil {
		s.owner = 0
	}
	key := rowKey{s, page}
	found := t.rows[key]
	if found == nil {
		found = &citing{}
		t.rows[key] = found
	}
	return found
}

func (c *citing) add(answers, pages int32, model, question int32, created time.Time) {
	c.answers += int64(answers)
	c.pages += int64(pages)
	c.models.add(model)
	c.questions.add(question)
	if c.first.IsZero() || created.Before(c.first) {
		c.first = created
	}
	if created.After(c.last) {
		c.last = created
	}
}

// addColumn adds the column sources of a chunk, whose cells of numbers that chosen does not select are left out.
func (t *sourceTable) addColumn(r *run, column []byte, chosen []bool) error {
	models, questions := t.numbers(r)
	n := int32(len(r.questions))
	var rows []*citing
	return decodeSources(column, func(sources []source) {
		rows = make([]*citing, len(sources))
		for i := range sources {
			rows[i] = t.row(sources[i], "")
		}
	}, func(c *sourceCell) {
		if int(c.no) >= len(chosen) || !chosen[c.no] {
			return
		}
		model, question := models[c.no/n], questions[c.no%n]
		if t.query.Gap {
			t.pages += int64(c.gapPages)
		} else {
			t.pages += int64(c.pages)
		}
		for i := range c.sources {
			s := &c.sources[i]
			answers, pages := s.answers, s.pages
			if t.query.Gap {
				answers, pages = s.gapAnswers, s.gap
			}
			if answers > 0 {
				rows[s.source].add(answers, pages, model, question, r.created)
			}
		}
	})
}

// addFacts adds ok answers one by one: for pages, and for frozen answers, whose owners and gaps depend on the brands of now.
func (t *sourceTable) addFacts(r *run, facts []Fact, chosen []bool) {
	models, questions := t.numbers(r)
	n := int32(len(r.questions))
	isOwn := func(brand int32) bool { b := t.brands[brand]; return b != nil && b.Kind == OwnerOwn }
	var cited []*citing
	for i := range facts {
		f := &facts[i]
		no := (f.Ordinal - 1) / r.repetitions
		if len(f.Pages) == 0 || !chosen[no] {
			continue
		}
		f.Brands = slices.DeleteFunc(f.Brands, func(b BrandFact) bool { return t.brands[b.Brand] == nil })
		if t.query.Gap && !f.isGap(isOwn) {
			continue
		}
		t.pages += int64(len(f.Pages))
		cited = cited[:0]
		for _, p := range f.Pages {
			if p.Host == "" {
				continue
			}
			page := ""
			if t.query.ByPage {
				page = p.Key
			}
			row, answers := t.row(source{p.Host, p.Owner}, page), int32(0)
			if !slices.Contains(cited, row) {
				cited, answers = append(cited, row), 1
			}
			row.add(answers, 1, models[no/n], questions[no%n], r.created)
		}
	}
}

// sorted returns the rows that the query chooses, in order.
func (t *sourceTable) sorted() []SourceRow {
	rows := []SourceRow{}
	for key, c := range t.rows {
		if c.answers == 0 {
			continue
		}
		row := SourceRow{
			Host: key.host, Page: key.page, Owner: OwnerOther, Answers: c.answers, CitationShare: newShare(c.pages, t.pages, NoCitations),
			Models: c.models.len(), Questions: c.questions.len(), First: c.first, Last: c.last,
		}
		if b := t.brands[key.owner]; b != nil {
			row.Owner, row.Brand = b.Kind, &b.ID
		}
		if t.query.Owner != "" && t.query.Owner != row.Owner || t.query.Brand != nil && (row.Brand == nil || *row.Brand != *t.query.Brand) {
			continue
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, compareSources)
	return rows
}

// compareSources orders rows: most answers first, then by host, page and brand, no brand last.
func compareSources(a, b SourceRow) int {
	return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Page, b.Page), compareBrands(a.Brand, b.Brand))
}

func compareBrands(a, b *store.ID) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}
