package visibility

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/catalog"
	"aiv/insights/brands"
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

// A run is a measurement run that a filter selects.
type run struct {
	id                          store.ID
	created                     time.Time
	status                      string
	country, language, measured string // measured: the measurement type
	methodology                 string
	models, questions           []string
	repetitions                 int32
	total, completed, failed    int32
	counted                     int32 // jobs that have facts
	seen                        seen  // by a census
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
	// %d in a condition is the number of its argument.
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
		// These conditions select runs that have the model or the question; chosen then selects their cells.
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
	// The time of the transaction is not after its snapshot.
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

// readRuns reads the rows of selectRuns.
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
			// The number of a cell is model number × questions + question number.
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
		// The three columns are not scanned, which would copy them.
		if err := rows.Scan(&id, &c.revision, &c.deleted, nil, nil, nil); err != nil {
			return err
		}
		raw := rows.RawValues() // of bytea, in binary form: the bytes, which need not be copied
		// byID has the run of every chunk, because both statements see one snapshot.
		c.run, c.cells, c.sources, c.facts = s.byID[id], raw[3], raw[4], raw[5]
		if err := f(&c); err != nil {
			return err
		}
	}
	return rows.Err()
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
	// Competitors are included because their names may take what would be a mention of an own brand.
	matcher := brands.Compile(s.brands)
	s.questions = make(map[string]*question, len(ids))
	for id := range ids {
		q := found[id]
		s.questions[id] = &question{topic: q.Topic, tags: q.Tags, branded: matcher.Question(q.Text).Branded()}
	}
	return nil
}
