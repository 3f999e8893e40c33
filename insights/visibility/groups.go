package visibility

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"aiv/insights/brands"
)

// A group collects the ok answers of one combination of group values.
type group struct {
	key       groupKey
	pages     int64           // that the ok answers cite, of any owner
	questions map[int32]int32 // indices of answers by the number of the question
	answers   []questionSum
	brands    [][]brandSum // by the brand's index, then by question
}

// A questionSum counts the answers to one question. known counts the ones whose sources are known.
type questionSum struct{ ok, known int32 }

// A groupKey contains the values of a group by dimension. Unused values are zero.
type groupKey [3]groupValue

// A groupValue is a text, a date or a boolean.
type groupValue struct {
	text string
	date date
	yes  bool
}

// compare orders values; false is before true. Of the three fields only one is used in a dimension.
func (v groupValue) compare(other groupValue) int {
	no := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(v.text, other.text), cmp.Compare(v.date, other.date), no(v.yes)-no(other.yes))
}

// question returns the index of a question in the group, by its number.
func (g *group) question(number int32) int32 {
	at, found := g.questions[number]
	if !found {
		at = int32(len(g.answers))
		g.questions[number], g.answers = at, append(g.answers, questionSum{})
	}
	return at
}

// brand returns the sums of a brand for a question.
func (g *group) brand(brand, question int32) *brandSum {
	sums := g.brands[brand]
	// Most brands occur in few questions, so the slice grows only as far as needed.
	if n := int(question) + 1; n > len(sums) {
		sums = append(sums, make([]brandSum, n-len(sums))...)
		g.brands[brand] = sums
	}
	return &sums[question]
}

// ErrTooManyRows is returned for a query that has more than MaxRows rows.
var ErrTooManyRows = errors.New("the query has too many rows")

// grouping finds the group of each job of the runs that a filter selects.
type grouping struct {
	query     *Query
	by        []Dimension // GroupBy of the query, or none if no brand has rows
	questions map[string]*question
	brands    []brands.Brand // active
	index     brandIndex
	groups    map[groupKey]*group
	numbers   map[string]int32 // of questions

	first, last date // of the buckets of jobs
	hasBuckets  bool
}

// A brandIndex maps the numbers of brands to their index among the active ones, plus one.
type brandIndex []int32

// newBrandIndex returns the index of active brands.
func newBrandIndex(active []brands.Brand) (index brandIndex) {
	for i, b := range active {
		for int(b.Number) >= len(index) {
			index = append(index, 0)
		}
		index[b.Number] = int32(i) + 1
	}
	return index
}

// of returns the index of a brand, or -1 if it is not active.
func (x brandIndex) of(number int32) int32 {
	if int(number) >= len(x) {
		return -1
	}
	return x[number] - 1
}

// newGrouping returns a grouping without groups. questions may be nil if neither the filter nor a dimension needs
// them.
func newGrouping(q *Query, active []brands.Brand, questions map[string]*question) *grouping {
	g := &grouping{query: q, questions: questions, brands: active, index: newBrandIndex(active), groups: make(map[groupKey]*group),
		numbers: make(map[string]int32)}
	// Without rows there is nothing to group, and one group keeps the sums small.
	if len(g.rowBrands()) > 0 {
		g.by = q.GroupBy
	}
	return g
}

// A target is where the sums of a cell are added: a group, and the index of the cell's question there. group is nil if
// the filter does not select the cell.
type target struct {
	group    *group
	question int32
}

// targets returns the targets of the cells of a run, by the numbers of the cells.
func (g *grouping) targets(r *run) ([]target, error) {
	all := make([]target, len(r.models)*len(r.questions))
	f := &g.query.Filter
	// The questions are looked up once for all models.
	chosen, numbers := make([]bool, len(r.questions)), make([]int32, len(r.questions))
	for i, id := range r.questions {
		chosen[i], numbers[i] = f.accepts(id, g.questions[id]), number(g.numbers, id)
	}
	// Neighbouring cells are mostly of one group.
	var last *group
	for m, model := range r.models {
		if f.Model != "" && f.Model != model {
			continue
		}
		for q, id := range r.questions {
			if !chosen[q] {
				continue
			}
			if key := g.key(r, model, id); last == nil || last.key != key {
				var err error
				if last, err = g.group(key); err != nil {
					return nil, err
				}
			}
			all[m*len(r.questions)+q] = target{last, last.question(numbers[q])}
		}
	}
	return all, nil
}

// key returns the group of a cell, and extends the range of buckets to it.
func (g *grouping) key(r *run, model, id string) (key groupKey) {
	for i, by := range g.by {
		v := &key[i]
		switch by {
		case ByModel:
			v.text = model
		case ByQuestion:
			v.text = id
		case ByTopic:
			v.text = g.questions[id].topic
		case ByCountry:
			v.text = r.country
		case ByLanguage:
			v.text = r.language
		case ByBranded:
			v.yes = g.questions[id].branded
		case ByRun:
			v.text = r.id.Text("run")
		default:
			v.date = bucketOf(r.created, by, g.query.Zone)
			if !g.hasBuckets {
				g.first, g.last, g.hasBuckets = v.date, v.date, true
			}
			g.first, g.last = min(g.first, v.date), max(g.last, v.date)
		}
	}
	return key
}

// group returns the group of a key. It fails as soon as the response would have too many rows, which also bounds
// memory.
func (g *grouping) group(key groupKey) (*group, error) {
	found := g.groups[key]
	if found == nil {
		if (len(g.groups)+1)*len(g.rowBrands()) > MaxRows {
			return nil, ErrTooManyRows
		}
		found = &group{key: key, questions: make(map[int32]int32), brands: make([][]brandSum, len(g.brands))}
		g.groups[key] = found
	}
	return found, nil
}

// rowBrands returns the brands that have rows, by name and id.
func (g *grouping) rowBrands() []brands.Brand {
	if g.query.Brand == nil {
		return g.brands
	}
	at := slices.IndexFunc(g.brands, func(b brands.Brand) bool { return b.ID == *g.query.Brand })
	if at < 0 {
		return nil
	}
	return g.brands[at : at+1]
}

// add adds the ok answers of a cell.
func (g *grouping) add(t target, c *cell) {
	group := t.group
	group.pages += int64(c.pages)
	group.answers[t.question].ok += c.ok
	group.answers[t.question].known += c.known
	for i := range c.brands {
		from := &c.brands[i]
		at := g.index.of(from.brand)
		// A frozen answer may have facts of a brand that is archived now.
		if at < 0 {
			continue
		}
		// Sums are kept by question, because effective sizes depend on how answers are spread over questions.
		to := group.brand(at, t.question)
		to.mentioned += from.mentioned
		to.mentions += from.mentions
		to.first += from.first
		to.positions += from.positions
		to.cited += from.cited
		to.pages += from.pages
	}
}

// sorted returns the groups of the response in order: groups of jobs, and the buckets of the window without jobs.
func (g *grouping) sorted() ([]*group, error) {
	// Without group_by there is one group, also if no job was found.
	if len(g.by) == 0 {
		if _, err := g.group(groupKey{}); err != nil {
			return nil, err
		}
	}
	if at := slices.IndexFunc(g.by, Dimension.OfTime); at >= 0 {
		if err := g.fill(at); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(g.groups), func(a, b *group) int {
		return cmp.Or(a.key[0].compare(b.key[0]), a.key[1].compare(b.key[1]), a.key[2].compare(b.key[2]))
	}), nil
}

// fill adds the groups of buckets without jobs. Without the start or the end of a window, the buckets begin with the
// first job or end with the last.
func (g *grouping) fill(at int) error {
	by, first, last := g.by[at], g.first, g.last
	if g.query.From != nil {
		first = bucketOf(*g.query.From, by, g.query.Zone)
	} else if !g.hasBuckets {
		return nil
	}
	if g.query.To != nil {
		// The end of the window is exclusive.
		last = bucketOf(g.query.To.Add(-1), by, g.query.Zone)
	} else if !g.hasBuckets {
		return nil
	}
	// others are the combinations of the other dimensions, each of which gets all buckets.
	others := make(map[groupKey]bool)
	// The date is cleared, so that each combination is there once.
	for key := range g.groups {
		key[at].date = 0
		others[key] = true
	}
	if len(g.by) == 1 {
		others[groupKey{}] = true
	}
	// others is empty if no job was found and there are other dimensions: then there are no groups.
	for date := first; date <= last && len(others) > 0; date = date.next(by) {
		if by == ByDay && !date.existsIn(g.query.Zone) {
			continue
		}
		for key := range others {
			key[at].date = date
			if _, err := g.group(key); err != nil {
				return err
			}
		}
	}
	return nil
}
