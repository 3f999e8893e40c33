package visibility

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/store"
)

// Metrics are the numbers of brands, by group.
type Metrics struct {
	Revision  int64 // of the account's brands
	Answers   Answers
	Questions int       // with ok answers
	Runs      int       // that have ok answers
	Versions  []string  // of the methodology, sorted
	Models    []Served  // most answers first, up to maxServed
	AsOf      time.Time // the time of the snapshot
	Rows      []Row
}

// Answers counts jobs by status. Only OK answers are counted in rates and shares.
type Answers struct {
	OK, Empty, Truncated, Failed, Canceled, Pending, Recounting int64
	Frozen                                                      int64 // of OK: counted at an older revision; their answers were deleted since
}

// Complete reports whether no job will be counted later.
func (a *Answers) Complete() bool { return a.Pending == 0 && a.Recounting == 0 }

// Served counts the ok answers of a model that one version of it gave.
type Served struct {
	Model   string
	Version *string
	Answers int64
}

// A Row has the numbers of one brand in one group.
type Row struct {
	Group    []string // the values of the group's dimensions
	Brand    *brands.Brand
	Mentions int64

	MentionRate, CitationRate, FirstRate  Rate
	ShareOfVoice, CitationShare, Position Share
}

// Reasons why a number is missing.
const (
	NoAnswers     = "no_answers"
	NoSources     = "no_sources"
	NoMentions    = "no_mentions"
	NoCompetitors = "no_competitors"
	NoCitations   = "no_citations"
)

// ReadMetrics returns the metrics of an account. It returns ErrTooManyRows.
func ReadMetrics(ctx context.Context, db store.Querier, account store.ID, q *Query) (m *Metrics, err error) {
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		m, err = readMetrics(ctx, tx, account, q)
		return err
	})
	return m, err
}

// readMetrics reads the metrics in a transaction, by one pass over the cells of all chunks.
func readMetrics(ctx context.Context, tx pgx.Tx, account store.ID, q *Query) (*Metrics, error) {
	needQuestions := slices.Contains(q.GroupBy, ByTopic) || slices.Contains(q.GroupBy, ByBranded)
	s, err := newSelection(ctx, tx, account, &q.Filter, needQuestions)
	if err != nil {
		return nil, err
	}
	g, all := newGrouping(q, s.brands, s.questions), newCensus(s)
	// The group of each cell is found once for each run, because many chunks have the same cells.
	runs := make(map[*run]*measuredRun, len(s.runs))
	for _, r := range s.runs {
		targets, err := g.targets(r)
		if err != nil {
			return nil, err
		}
		runs[r] = &measuredRun{targets: targets, answered: make([]bool, len(r.questions))}
	}
	served := newServedModels()
	err = s.eachChunk(ctx, "f.cells, NULL::bytea, NULL::bytea", func(c *chunk) error {
		r, stale := runs[c.run], s.isStale(c)
		n := len(c.run.questions)
		return eachCell(c.cells, len(r.targets), func(cell *cell) {
			// A cell that the filter does not select counts nowhere, not in the census either.
			t := r.targets[cell.no]
			if t.group == nil {
				return
			}
			all.add(c, cell)
			// The census has counted the answers of a stale chunk as recounting. They count in no rate or share.
			if stale || cell.ok == 0 {
				return
			}
			g.add(t, cell)
			served.add(c.run.models[int(cell.no)/n], cell.version, int64(cell.ok))
			r.answered[int(cell.no)%n] = true
		})
	})
	if err != nil {
		return nil, err
	}
	if err := all.finish(ctx); err != nil {
		return nil, err
	}
	rows, err := g.rows()
	if err != nil {
		return nil, err
	}
	m := &Metrics{Revision: s.revision, Answers: all.answers, Models: served.list(), AsOf: s.asOf, Rows: rows}
	// These numbers are of runs and questions with ok answers only.
	versions, questions := make(map[string]bool), make(map[string]bool)
	for r, measured := range runs {
		if !slices.Contains(measured.answered, true) {
			continue
		}
		m.Runs++
		versions[r.methodology] = true
		for i, id := range r.questions {
			if measured.answered[i] {
				questions[id] = true
			}
		}
	}
	m.Questions, m.Versions = len(questions), slices.Sorted(maps.Keys(versions))
	return m, nil
}

// A measuredRun is what metrics need of a run.
type measuredRun struct {
	targets  []target // of its cells
	answered []bool   // the questions that have ok answers
}

// rows returns the rows of the groups.
func (g *grouping) rows() ([]Row, error) {
	groups, err := g.sorted()
	if err != nil {
		return nil, err
	}
	hasCompetitor := slices.ContainsFunc(g.brands, func(b brands.Brand) bool { return b.Kind == brands.Competitor })
	shown := g.rowBrands()
	if len(groups)*len(shown) > MaxRows {
		return nil, ErrTooManyRows
	}
	rows := make([]Row, 0, len(groups)*len(shown))
	for _, group := range groups {
		// All active brands count, whichever of them have rows.
		var voices int64 // the denominator of the share of voice
		for i := range group.brands {
			for j := range group.brands[i] {
				voices += int64(group.brands[i][j].mentioned)
			}
		}
		values := g.values(group.key)
		for i := range shown {
			row := group.row(&shown[i], int(g.index.of(shown[i].Number)))
			row.Group = values
			mentioned := row.MentionRate.Count
			if hasCompetitor {
				row.ShareOfVoice = newShare(mentioned, voices, NoMentions)
			} else {
				row.ShareOfVoice = Share{Count: mentioned, Of: voices, Reason: NoCompetitors}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// row returns the numbers of a brand, whose index among the active ones is given.
func (g *group) row(b *brands.Brand, index int) Row {
	var positions, pages, mentioned, mentions int64
	mention, citation, first := make([]split, len(g.answers)), make([]split, len(g.answers)), make([]split, len(g.answers))
	for q, answers := range g.answers {
		mention[q].of, citation[q].of = answers.ok, answers.known
		// The brand occurs in no answer to this question or a later one.
		if q >= len(g.brands[index]) {
			continue
		}
		s := &g.brands[index][q]
		mention[q].count, citation[q].count = s.mentioned, s.cited
		// The first rate is over the answers that mention the brand.
		first[q] = split{s.first, s.mentioned}
		positions, pages = positions+int64(s.positions), pages+int64(s.pages)
		mentioned, mentions = mentioned+int64(s.mentioned), mentions+int64(s.mentions)
	}
	return Row{
		Brand: b, Mentions: mentions,
		MentionRate:   newRate(mention, NoAnswers),
		CitationRate:  newRate(citation, NoSources),
		FirstRate:     newRate(first, NoMentions),
		CitationShare: newShare(pages, g.pages, NoCitations),
		Position:      newShare(positions, mentioned, NoMentions),
	}
}

// values returns the values of a group as texts.
func (g *grouping) values(key groupKey) []string {
	values := make([]string, len(g.query.GroupBy))
	for i, by := range g.query.GroupBy {
		switch {
		case by.OfTime():
			values[i] = key[i].date.String()
		case by == ByBranded && key[i].yes:
			values[i] = "true"
		case by == ByBranded:
			values[i] = "false"
		default:
			values[i] = key[i].text
		}
	}
	return values
}
