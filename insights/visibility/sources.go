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

// Sources contains all rows of a SourceQuery, in order.
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

// A citing sums the citations of one row. The numbers in the sets are the table's; see number.
type citing struct {
	answers, pages    int64
	models, questions set
	run               *run // of the latest citation added
	first, last       time.Time
}

// A set is a set of small numbers.
type set []uint64

// add adds a number, in the bit n modulo 64 of the word n / 64.
func (s *set) add(n int32) {
	for int(n)>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n>>6] |= 1 << (n & 63)
}

// len returns the number of elements.
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
	pages             int64 // including pages without a host
	models, questions map[string]int32

	// The columns of chunks repeat the same sources, so their rows are found by the encoded form without decoding it.
	decoder sourceDecoder
	encoded map[string]*citing // by encoded source
	ofChunk []*citing          // the rows of the sources of the current chunk, in their order
}

func newSourceTable(q *SourceQuery, active []brands.Brand) *sourceTable {
	t := &sourceTable{query: q, brands: make(map[int32]*brands.Brand), rows: make(map[rowKey]*citing),
		models: make(map[string]int32), questions: make(map[string]int32), encoded: make(map[string]*citing)}
	for i := range active {
		t.brands[active[i].Number] = &active[i]
	}
	return t
}

// number returns the number of a text, the next one if the text is new.
func number(of map[string]int32, text string) int32 {
	n, found := of[text]
	if !found {
		n = int32(len(of))
		of[text] = n
	}
	return n
}

// A sourceRun is what the table needs of a run.
type sourceRun struct {
	*run
	chosen                        []bool  // the cells that the filter selects, by number
	modelNumbers, questionNumbers []int32 // in the table, of the run's models and questions
}

// newRun returns what the table needs of a run, and numbers its models and questions in the table.
func (t *sourceTable) newRun(r *run, chosen []bool) *sourceRun {
	of := &sourceRun{run: r, chosen: chosen}
	for _, m := range r.models {
		of.modelNumbers = append(of.modelNumbers, number(t.models, m))
	}
	for _, q := range r.questions {
		of.questionNumbers = append(of.questionNumbers, number(t.questions, q))
	}
	return of
}

// isChosen reports whether the filter selects a cell. Damaged facts may have a cell that the run does not have.
func (r *sourceRun) isChosen(cell int32) bool {
	return cell >= 0 && int(cell) < len(r.chosen) && r.chosen[cell]
}

// numbers returns the numbers of the model and the question of a cell.
func (r *sourceRun) numbers(cell int32) (model, question int32) {
	n := int32(len(r.questions))
	return r.modelNumbers[cell/n], r.questionNumbers[cell%n]
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

// add adds citations of one answer or cell. answers is 0 for a further page of an answer that is counted already.
func (c *citing) add(answers, pages, model, question int32, r *run) {
	c.answers += int64(answers)
	c.pages += int64(pages)
	c.models.add(model)
	c.questions.add(question)
	// The dates were set by an earlier citation of this run.
	if c.run == r {
		return
	}
	c.run = r
	if c.first.IsZero() || r.created.Before(c.first) {
		c.first = r.created
	}
	if r.created.After(c.last) {
		c.last = r.created
	}
}

// encodedRow returns the sums of a source.
func (t *sourceTable) encodedRow(e encodedSource) *citing {
	found := t.encoded[string(e)]
	if found == nil {
		found = t.row(e.decode(), "")
		t.encoded[string(e)] = found
	}
	return found
}

// addColumn adds the column sources of a chunk.
func (t *sourceTable) addColumn(r *sourceRun, column []byte) error {
	return t.decoder.decode(column, func(sources []encodedSource) {
		t.ofChunk = t.ofChunk[:0]
		for _, s := range sources {
			t.ofChunk = append(t.ofChunk, t.encodedRow(s))
		}
	}, func(c *sourceCell) {
		if !r.isChosen(c.no) {
			return
		}
		model, question := r.numbers(c.no)
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
				t.ofChunk[s.source].add(answers, pages, model, question, r.run)
			}
		}
	})
}

// addFacts adds ok answers one by one: for pages, and for frozen answers, whose owners and gaps depend on the current
// brands.
func (t *sourceTable) addFacts(r *sourceRun, facts []Fact) {
	isOwn := func(brand int32) bool { b := t.brands[brand]; return b != nil && b.Kind == OwnerOwn }
	var cited []*citing
	for i := range facts {
		f := &facts[i]
		// Only ok answers have pages.
		no := (f.Ordinal - 1) / r.repetitions
		if len(f.Pages) == 0 || !r.isChosen(no) {
			continue
		}
		model, question := r.numbers(no)
		// An archived brand must not make the answer a gap.
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
			// An answer counts once for a host, however many pages of the host it cites.
			if !slices.Contains(cited, row) {
				cited, answers = append(cited, row), 1
			}
			row.add(answers, 1, model, question, r.run)
		}
	}
}

// sorted returns the rows that the query chooses, in order.
func (t *sourceTable) sorted() []SourceRow {
	rows := []SourceRow{}
	for key, c := range t.rows {
		// The row was made for a source that only answers outside of the filter or the gap cite.
		if c.answers == 0 {
			continue
		}
		row := SourceRow{
			Host: key.host, Page: key.page, Owner: OwnerOther, Answers: c.answers, CitationShare: newShare(c.pages, t.pages, NoCitations),
			Models: c.models.len(), Questions: c.questions.len(), First: c.first, Last: c.last,
		}
		// No brand has the number 0, so a source without an owner keeps OwnerOther.
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
	return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Page, b.Page), compareAbsentLast(a.Brand, b.Brand, store.ID.Compare))
}

// compareAbsentLast compares two values, of which nil is the last.
func compareAbsentLast[T any](a, b *T, compare func(a, b T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return compare(*a, *b)
}
