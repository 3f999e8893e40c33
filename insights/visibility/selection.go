package visibility

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/catalog"
	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/store"
)

// A selection is what a filter selects of an account, in one snapshot of the database.
type selection struct {
	tx        pgx.Tx
	account   store.ID
	filter    *Filter
	revision  int64 // of the brands
	brands    []brands.Brand
	runs      []*run // by creation
	byID      map[store.ID]*run
	questions map[string]*question
	asOf      time.Time
}

// A chunk is a row of visibility_facts. Its columns are valid until the next row is read.
type chunk struct {
	run      *run
	revision int64
	deleted  bool // the answers
	cells    []byte
	sources  []byte
	facts    []byte
}

// isStale reports whether the answers of the chunk wait for their recount.
func (s *selection) isStale(c *chunk) bool { return c.revision < s.revision && !c.deleted }

// isFrozen reports whether the answers of the chunk were counted at an older revision and cannot be recounted.
func (s *selection) isFrozen(c *chunk) bool { return c.revision < s.revision && c.deleted }

// where returns the conditions of the filter on runs r, with their arguments. $1 is the account.
func (f *Filter) where(account store.ID) (conditions string, args []any) {
	var b strings.Builder
	args = []any{account}
	add := func(condition string, value any) {
		args = append(args, value)
		fmt.Fprintf(&b, " AND "+condition, len(args))
	}
	if f.From != nil {
		add("r.created_at >= $%d", *f.From)
	}
	if f.To != nil {
		add("r.created_at < $%d", *f.To)
	}
	if f.Run != nil {
		add("r.id = $%d", *f.Run)
	}
	if f.Runs != nil {
		add("r.id = ANY ($%d)", f.Runs)
	}
	for _, text := range []struct{ condition, value string }{
		{"r.country = $%d", f.Country}, {"r.language = $%d", f.Language}, {"r.measurement_type = $%d", f.MeasurementType},
		{"r.model_ids @> ARRAY[$%d]", f.Model}, {"r.question_ids @> ARRAY[$%d]", f.Question},
	} {
		if text.value != "" {
			add(text.condition, text.value)
		}
	}
	return b.String(), args
}

const (
	selectRuns = `
SELECT r.id, r.created_at, r.status, r.country, r.language, r.measurement_type, r.methodology_version, r.model_ids, r.question_ids,
  r.repetitions, r.total_jobs, r.jobs_completed, r.jobs_failed, r.jobs_counted
FROM measurement_runs r WHERE r.account_id = $1`

	// selectChunks begins with the columns that a read needs.
	selectChunks = `
FROM measurement_runs r JOIN visibility_facts f ON f.account_id = r.account_id AND f.run_id = r.id
WHERE r.account_id = $1 AND f.account_id = $1`
)

// newSelection reads everything but the facts.
func newSelection(ctx context.Context, tx pgx.Tx, account store.ID, f *Filter, needQuestions bool) (*selection, error) {
	s := &selection{tx: tx, account: account, filter: f, byID: make(map[store.ID]*run)}
	where, args := f.where(account)
	var b pgx.Batch
	b.Queue(`SELECT now()`).QueryRow(func(row pgx.Row) error { return row.Scan(&s.asOf) })
	b.Queue(selectRuns+where+" ORDER BY r.created_at, r.id", args...).Query(s.readRuns)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	var err error
	if s.brands, s.revision, err = brands.ReadActive(ctx, tx, account); err != nil {
		return nil, err
	}
	if !needQuestions && !f.needsQuestions() {
		return s, nil
	}
	return s, s.readQuestions(ctx)
}

func (s *selection) readRuns(rows pgx.Rows) error {
	for rows.Next() {
		r := &run{}
		if err := rows.Scan(&r.id, &r.created, &r.status, &r.country, &r.language, &r.measured, &r.methodology, &r.models, &r.questions,
			&r.repetitions, &r.total, &r.completed, &r.failed, &r.counted); err != nil {
			return err
		}
		s.runs = append(s.runs, r)
		s.byID[r.id] = r
	}
	return rows.Err()
}

// chosen returns which cells of a run the filter selects, by number.
func (s *selection) chosen(r *run) []bool {
	cells := make([]bool, len(r.models)*len(r.questions))
	for q, id := range r.questions {
		if !s.filter.accepts(id, s.questions[id]) {
			continue
		}
		for m, model := range r.models {
			cells[m*len(r.questions)+q] = s.filter.Model == "" || s.filter.Model == model
		}
	}
	return cells
}

// eachChunk calls f with each chunk of the selected runs. columns are columns of visibility_facts in the order cells,
// sources, facts, or NULL where f needs none.
func (s *selection) eachChunk(ctx context.Context, columns string, f func(*chunk) error) error {
	where, args := s.filter.where(s.account)
	rows, err := s.tx.Query(ctx, "SELECT r.id, f.revision, f.deleted, "+columns+selectChunks+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var c chunk
	for rows.Next() {
		var id store.ID
		if err := rows.Scan(&id, &c.revision, &c.deleted, nil, nil, nil); err != nil {
			return err
		}
		raw := rows.RawValues() // of bytea, in binary form: the bytes, which need not be copied
		c.run, c.cells, c.sources, c.facts = s.byID[id], raw[3], raw[4], raw[5]
		if err := f(&c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A census counts the jobs of a selection by status.
type census struct {
	*selection
	answers Answers
}

// seen counts the jobs of a run that have facts, of those that the filter selects.
type seen struct{ completed, failed int64 }

func newCensus(s *selection) *census { return &census{selection: s} }

// add counts the jobs of a cell that the filter selects.
func (c *census) add(from *chunk, of *cell) {
	a := &c.answers
	switch ok := int64(of.ok); {
	case c.isStale(from):
		a.Recounting += ok
	case c.isFrozen(from):
		a.OK, a.Frozen = a.OK+ok, a.Frozen+ok
	default:
		a.OK += ok
	}
	a.Empty += int64(of.empty)
	a.Truncated += int64(of.truncated)
	a.Failed += int64(of.failed)
	s := &from.run.seen
	s.completed += int64(of.ok + of.empty + of.truncated)
	s.failed += int64(of.failed)
}

// finish counts the jobs that have no facts: those that have not ended, or were canceled, and those that ended before
// facts were kept.
func (c *census) finish(ctx context.Context) error {
	for _, r := range c.runs {
		s := &r.seen
		jobs, completed, failed := int64(r.total), int64(r.completed), int64(r.failed)
		if c.filter.ofJobs() {
			jobs = 0
			chosen := c.chosen(r)
			for _, yes := range chosen {
				if yes {
					jobs += int64(r.repetitions)
				}
			}
			completed, failed = s.completed, s.failed
			if r.counted < r.completed+r.failed {
				moreCompleted, moreFailed, err := c.uncounted(ctx, r, chosen)
				if err != nil {
					return err
				}
				completed, failed = completed+moreCompleted, failed+moreFailed
			}
		}
		c.answers.Recounting += completed - s.completed
		c.answers.Failed += failed - s.failed
		if rest := jobs - completed - failed; r.status == "canceled" {
			c.answers.Canceled += rest
		} else {
			c.answers.Pending += rest
		}
	}
	return nil
}

// uncounted returns how many jobs of some cells of a run have ended and have no facts.
func (c *census) uncounted(ctx context.Context, r *run, chosen []bool) (completed, failed int64, err error) {
	counted := make(map[int32]bool)
	rows, err := c.tx.Query(ctx, `SELECT facts FROM visibility_facts WHERE account_id = $1 AND run_id = $2`, c.account, r.id)
	if err != nil {
		return 0, 0, err
	}
	var column []byte
	if _, err := pgx.ForEachRow(rows, []any{&column}, func() error {
		facts, err := decodeFacts(column)
		for i := range facts {
			counted[facts[i].Ordinal] = true
		}
		return err
	}); err != nil {
		return 0, 0, err
	}
	rows, err = c.tx.Query(ctx, `
SELECT ordinal, error_code IS NOT NULL FROM job_results WHERE account_id = $1 AND run_id = $2 AND NOT canceled`, c.account, r.id)
	if err != nil {
		return 0, 0, err
	}
	var ordinal int32
	var isFailed bool
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &isFailed}, func() error {
		switch {
		case counted[ordinal] || !chosen[(ordinal-1)/r.repetitions]:
		case isFailed:
			failed++
		default:
			completed++
		}
		return nil
	})
	return completed, failed, err
}

// ReadMetrics returns the metrics of an account. It returns ErrTooManyRows.
func ReadMetrics(ctx context.Context, db store.Querier, account store.ID, q *Query) (m *Metrics, err error) {
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		m, err = readMetrics(ctx, tx, account, q)
		return err
	})
	return m, err
}

func readMetrics(ctx context.Context, tx pgx.Tx, account store.ID, q *Query) (*Metrics, error) {
	needQuestions := slices.Contains(q.GroupBy, ByTopic) || slices.Contains(q.GroupBy, ByBranded)
	s, err := newSelection(ctx, tx, account, &q.Filter, needQuestions)
	if err != nil {
		return nil, err
	}
	g, all := newGrouping(q, s.brands, s.questions), newCensus(s)
	runs := make(map[*run]*measuredRun, len(s.runs))
	for _, r := range s.runs {
		places, err := g.places(r)
		if err != nil {
			return nil, err
		}
		runs[r] = &measuredRun{places: places, answered: make([]bool, len(r.questions))}
	}
	served := newServedModels()
	err = s.eachChunk(ctx, "f.cells, NULL::bytea, NULL::bytea", func(c *chunk) error {
		r, stale := runs[c.run], s.isStale(c)
		n := len(c.run.questions)
		return eachCell(c.cells, func(cell *cell) {
			p := r.places[cell.no]
			if p.group == nil {
				return
			}
			all.add(c, cell)
			if stale || cell.ok == 0 {
				return
			}
			g.add(p, cell)
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
	versions, questions := make(map[string]bool), make(map[string]bool)
	for r, of := range runs {
		if !slices.Contains(of.answered, true) {
			continue
		}
		m.Runs++
		versions[r.methodology] = true
		for i, id := range r.questions {
			if of.answered[i] {
				questions[id] = true
			}
		}
	}
	m.Questions, m.Versions = len(questions), slices.Sorted(maps.Keys(versions))
	return m, nil
}

// A measuredRun is what metrics need of a run.
type measuredRun struct {
	places   []place
	answered []bool // the questions that have ok answers
}

// servedModels counts ok answers by model and version.
type servedModels struct {
	counts map[servedModelKey]*int64

	// Most answers are of the same model and version as those before.
	model   string
	version *string
	count   *int64
}

type servedModelKey struct {
	model, version string
	known          bool
}

func newServedModels() *servedModels { return &servedModels{counts: make(map[servedModelKey]*int64)} }

func (s *servedModels) add(model string, version *string, answers int64) {
	if s.count == nil || s.model != model || !equalVersions(s.version, version) {
		key := servedModelKey{model: model}
		if version != nil {
			key.version, key.known = *version, true
		}
		if s.counts[key] == nil {
			s.counts[key] = new(int64)
		}
		s.model, s.version, s.count = model, version, s.counts[key]
	}
	*s.count += answers
}

// maxServed is the maximum number of served models that a response lists.
const maxServed = 50

// list returns the models with the most answers.
func (s *servedModels) list() []Served {
	all := make([]Served, 0, len(s.counts))
	for key, n := range s.counts {
		m := Served{Model: key.model, Answers: *n}
		if key.known {
			m.Version = &key.version
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Served) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Model, b.Model), compareVersions(a.Version, b.Version))
	})
	return all[:min(len(all), maxServed)]
}

func compareVersions(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return strings.Compare(*a, *b)
}

// readQuestions reads the questions of the selected runs as they are now, and finds which of them mention an own brand.
func (s *selection) readQuestions(ctx context.Context) error {
	ids := make(map[string]bool)
	for _, r := range s.runs {
		for _, id := range r.questions {
			ids[id] = true
		}
	}
	found, err := catalog.QuestionsOf(ctx, s.tx, s.account, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return err
	}
	var own []match.Brand
	for i := range s.brands {
		if s.brands[i].Kind == brands.Own {
			own = append(own, s.brands[i].Compiled())
		}
	}
	matcher := match.Compile(own)
	s.questions = make(map[string]*question, len(ids))
	for id := range ids {
		q := found[id]
		s.questions[id] = &question{topic: q.Topic, tags: q.Tags, branded: matcher.Question(q.Text).Branded()}
	}
	return nil
}
