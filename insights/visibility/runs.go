package visibility

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/store"
)

// RunComparisons compare a run with earlier ones.
type RunComparisons struct {
	All     *Comparison
	ByModel []*Comparison // in the order of the models
}

// CompareRuns compares a run with several others together, over all models and for each of the models alone, in the
// snapshot of the transaction.
func CompareRuns(ctx context.Context, tx pgx.Tx, account, run store.ID, baseline []store.ID, models []string) (*RunComparisons, error) {
	now, _, err := readSide(ctx, tx, account, &Query{Filter: Filter{Run: &run}})
	if err != nil {
		return nil, err
	}
	before, _, err := readSide(ctx, tx, account, &Query{Filter: Filter{Runs: baseline}})
	if err != nil {
		return nil, err
	}
	// Each side is read once; the comparisons by model use parts of it.
	c := &RunComparisons{All: compare(now, before)}
	for _, m := range models {
		c.ByModel = append(c.ByModel, compare(now.ofModel(m), before.ofModel(m)))
	}
	return c, nil
}

// ofModel returns the answers of one model.
func (s *side) ofModel(model string) *side {
	of := newSide(s.grouping)
	for key, versions := range s.found {
		if key.model == model {
			of.found[key] = versions
		}
	}
	return of
}

// Gaps are where the ok answers of a run mention competitors and no own brand.
type Gaps struct {
	Answers   Answers
	Active    []brands.Brand
	Questions []QuestionGap // in the run's order
	Hosts     []HostGap
}

// A QuestionGap is a question of a run. It is a gap if no answer mentions an own brand.
type QuestionGap struct {
	Question     string
	Answers      int64 // ok
	MentionsOwn  bool  // whether some answer mentions an own brand
	Competitors  []Mentioned
	competitorAt map[int32]int // index in Competitors, by the index of the active brand
}

// Mentioned is a competitor that answers to a question mention.
type Mentioned struct {
	Brand   *brands.Brand
	Answers int64
	Models  []string // whose answers mention it, in the run's order
}

// A HostGap is a host that belongs to no brand and is cited by answers that mention a competitor but no own brand.
type HostGap struct {
	Host              string
	Answers           int64
	Models, Questions []string // of these answers, in the run's order
}

// ReadGaps returns the questions of a run and the hosts in gaps, in the snapshot of the transaction.
func ReadGaps(ctx context.Context, tx pgx.Tx, account, id store.ID) (*Gaps, error) {
	f := &Filter{Run: &id}
	s, err := newSelection(ctx, tx, account, f, false)
	if err != nil {
		return nil, err
	}
	found := &Gaps{Active: s.brands}
	// An unknown run has no gaps.
	if len(s.runs) == 0 {
		return found, nil
	}
	r := s.runs[0]
	for _, q := range r.questions {
		found.Questions = append(found.Questions, QuestionGap{Question: q, competitorAt: make(map[int32]int)})
	}
	// Gap makes the table count only answers that mention a competitor and no own brand.
	table, all, chosen := newSourceTable(&SourceQuery{Filter: *f, Gap: true}, s.brands), newCensus(s), s.chosen(r)
	index, of := newBrandIndex(s.brands), table.newRun(r, chosen)
	err = s.eachChunk(ctx, "f.cells, f.sources, CASE WHEN f.deleted THEN f.facts END", func(c *chunk) error {
		stale := s.isStale(c)
		if err := eachCell(c.cells, len(chosen), func(cell *cell) {
			all.add(c, cell)
			if !stale {
				n := len(r.questions)
				// The number of a cell is model number × questions + question number.
				found.Questions[int(cell.no)%n].add(cell, s.brands, index, r.models[int(cell.no)/n])
			}
		}); err != nil || stale {
			return err
		}
		if !s.isFrozen(c) {
			return table.addColumn(of, c.sources)
		}
		facts, err := decodeFacts(c.facts)
		table.addFacts(of, facts)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := all.finish(ctx); err != nil {
		return nil, err
	}
	found.Answers, found.Hosts = all.answers, table.hosts(of)
	for i := range found.Questions {
		found.Questions[i].sortModels(r)
	}
	return found, nil
}

// add adds the ok answers of a cell.
func (q *QuestionGap) add(c *cell, active []brands.Brand, index brandIndex, model string) {
	q.Answers += int64(c.ok)
	for i := range c.brands {
		at := index.of(c.brands[i].brand)
		// The brand is archived now, or no answer mentions it.
		if at < 0 || c.brands[i].mentioned == 0 {
			continue
		}
		if active[at].Kind == brands.Own {
			q.MentionsOwn = true
			continue
		}
		k, known := q.competitorAt[at]
		if !known {
			k = len(q.Competitors)
			q.competitorAt[at], q.Competitors = k, append(q.Competitors, Mentioned{Brand: &active[at]})
		}
		q.Competitors[k].Answers += int64(c.brands[i].mentioned)
		q.Competitors[k].Models = append(q.Competitors[k].Models, model)
	}
}

// sortModels puts models into the run's order and removes duplicates.
func (q *QuestionGap) sortModels(r *run) {
	for i := range q.Competitors {
		c := &q.Competitors[i]
		c.Models = slices.DeleteFunc(slices.Clone(r.models), func(m string) bool { return !slices.Contains(c.Models, m) })
	}
}

// hosts returns the hosts of the table that no brand owns, most answers first.
func (t *sourceTable) hosts(r *sourceRun) (hosts []HostGap) {
	// among returns the ids whose numbers are in a set, in their order.
	among := func(ids []string, numbers []int32, in set) (found []string) {
		for i, n := range numbers {
			if int(n)>>6 < len(in) && in[n>>6]&(1<<(n&63)) != 0 {
				found = append(found, ids[i])
			}
		}
		return found
	}
	for _, row := range t.sorted() {
		if row.Owner != OwnerOther {
			continue
		}
		c := t.rows[rowKey{source{host: row.Host}, ""}]
		hosts = append(hosts, HostGap{row.Host, row.Answers, among(r.models, r.modelNumbers, c.models), among(r.questions, r.questionNumbers, c.questions)})
	}
	return hosts
}
