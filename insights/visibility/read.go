package visibility

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/store"
)

// ReadComparison compares two sides of an account. The queries differ only in what selects runs: Run, From and To.
func ReadComparison(ctx context.Context, db store.Querier, account store.ID, current, baseline *Query) (c *Comparison, err error) {
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		now, s, err := readSide(ctx, tx, account, current)
		if err != nil {
			return err
		}
		before, _, err := readSide(ctx, tx, account, baseline)
		if err != nil {
			return err
		}
		c = compare(now, before)
		c.Revision, c.AsOf = s.revision, s.asOf
		return nil
	})
	return c, err
}

// readSide reads one side: the ok answers that the query selects, and the census of its jobs.
func readSide(ctx context.Context, tx pgx.Tx, account store.ID, q *Query) (*side, *selection, error) {
	s, err := newSelection(ctx, tx, account, &q.Filter, false)
	if err != nil {
		return nil, nil, err
	}
	found, all := newSide(newGrouping(q, s.brands, s.questions)), newCensus(s)
	chosen := make(map[*run][]bool, len(s.runs)) // cells
	for _, r := range s.runs {
		chosen[r] = s.chosen(r)
	}
	err = s.eachChunk(ctx, "f.cells, NULL::bytea, NULL::bytea", func(c *chunk) error {
		// A stale chunk counts in the census only.
		at, stale := chosen[c.run], s.isStale(c)
		return eachCell(c.cells, len(at), func(cell *cell) {
			if !at[cell.no] {
				return
			}
			all.add(c, cell)
			if !stale {
				found.add(c.run, cell)
			}
		})
	})
	if err != nil {
		return nil, nil, err
	}
	err = all.finish(ctx)
	found.answers = all.answers
	return found, s, err
}

// ReadSources returns the sources that answers of an account cite.
func ReadSources(ctx context.Context, db store.Querier, account store.ID, q *SourceQuery) (found *Sources, err error) {
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		found, err = readSources(ctx, tx, account, q)
		return err
	})
	return found, err
}

// maxSources bounds the memory of a read: a row takes about 400 bytes. To read so many rows takes longer than a read
// may take.
const maxSources = 200_000

var errTooManySources = fmt.Errorf("more than %d sources: %w", maxSources, context.DeadlineExceeded)

// readSources adds the sums of chunks where possible. Pages are not in the sums, and the sums of frozen chunks are by
// brands that may have changed, so these rows come from the facts.
func readSources(ctx context.Context, tx pgx.Tx, account store.ID, q *SourceQuery) (*Sources, error) {
	s, err := newSelection(ctx, tx, account, &q.Filter, false)
	if err != nil {
		return nil, err
	}
	// The census is of all answers that the filter selects, before gap and owner.
	table, all := newSourceTable(q, s.brands), newCensus(s)
	runs := make(map[*run]*sourceRun, len(s.runs))
	for _, r := range s.runs {
		runs[r] = table.newRun(r, s.chosen(r))
	}
	// The facts take most of the space of a chunk, and are read only where they are needed.
	columns := "f.cells, f.sources, CASE WHEN f.deleted THEN f.facts END"
	if q.ByPage {
		columns = "f.cells, NULL::bytea, f.facts"
	}
	err = s.eachChunk(ctx, columns, func(c *chunk) error {
		r := runs[c.run]
		if err := eachCell(c.cells, len(r.chosen), func(cell *cell) {
			if r.chosen[cell.no] {
				all.add(c, cell)
			}
		}); err != nil || s.isStale(c) {
			return err
		}
		if !q.ByPage && !s.isFrozen(c) {
			return table.addColumn(r, c.sources)
		}
		facts, err := decodeFacts(c.facts)
		if table.addFacts(r, facts); len(table.rows) > maxSources {
			return errTooManySources
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := all.finish(ctx); err != nil {
		return nil, err
	}
	return &Sources{Answers: all.answers, Rows: table.sorted()}, nil
}

// ReadFacts returns the facts of jobs of a run whose answers are counted (OK), by ordinal, for the ordinals from first
// to last. Facts of brands that are not active are left out.
func ReadFacts(ctx context.Context, db store.Querier, account, run store.ID, first, last int32) (facts map[int32]Fact, active []brands.Brand, err error) {
	facts = make(map[int32]Fact)
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		var revision int64
		if active, revision, err = brands.ReadActive(ctx, tx, account); err != nil {
			return err
		}
		index := newBrandIndex(active)
		return eachFact(ctx, tx, func(f *Fact) {
			// A chunk may have jobs before and after the ones that are asked for.
			if f.Status == OK && f.Ordinal >= first && f.Ordinal <= last {
				f.Brands = slices.DeleteFunc(f.Brands, func(b BrandFact) bool { return index.of(b.Brand) < 0 })
				facts[f.Ordinal] = *f
			}
		}, selectFacts, account, run, first, last, revision)
	})
	return facts, active, err
}

// selectFacts returns the facts that are counted: at the present revision $5, or frozen.
const selectFacts = `
SELECT facts FROM visibility_facts
WHERE account_id = $1 AND run_id = $2 AND first_ordinal <= $4 AND last_ordinal >= $3 AND (revision >= $5 OR deleted)
ORDER BY account_id, run_id, first_ordinal`

// eachFact calls f with the facts that a statement selects, in the column facts. The facts of one chunk are in memory
// at a time.
func eachFact(ctx context.Context, tx pgx.Tx, f func(*Fact), sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var column []byte
	_, err = pgx.ForEachRow(rows, []any{&column}, func() error {
		facts, err := decodeFacts(column)
		for i := range facts {
			f(&facts[i])
		}
		return err
	})
	return err
}

// selectFactsBetween returns the facts of chunks with jobs after ordinal $3 and up to $4.
const selectFactsBetween = `
SELECT facts FROM visibility_facts WHERE account_id = $1 AND run_id = $2 AND first_ordinal <= $4 AND last_ordinal > $3`

// A Choice selects ok answers by what they show of one brand.
type Choice struct {
	Brand     store.ID
	Mentioned *bool // whether they mention it; nil: either
	Cited     *bool // whether they cite it, of those whose sources are known; nil: either
}

// Choose returns the first n ordinals after the given one of a run's answers that a choice selects.
func Choose(ctx context.Context, db store.Querier, account, run store.ID, choice Choice, after int32, n int) (ordinals []int32, err error) {
	err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		active, revision, err := brands.ReadActive(ctx, tx, account)
		if err != nil {
			return err
		}
		// A brand that is not active selects nothing.
		at := slices.IndexFunc(active, func(b brands.Brand) bool { return b.ID == choice.Brand })
		if at < 0 {
			return nil
		}
		rows, err := tx.Query(ctx, selectFactsAfter, account, run, after, revision)
		if err != nil {
			return err
		}
		defer rows.Close()
		var first int32
		var column []byte
		for rows.Next() {
			if err := rows.Scan(&first, &column); err != nil {
				return err
			}
			// The jobs of chunks may alternate. All jobs before the first job of this chunk have been read.
			if i, _ := slices.BinarySearch(ordinals, first); i >= n {
				break
			}
			facts, err := decodeFacts(column)
			if err != nil {
				return err
			}
			for i := range facts {
				if f := &facts[i]; f.Status == OK && f.Ordinal > after && choice.selects(f, active[at].Number) {
					ordinals = append(ordinals, f.Ordinal)
				}
			}
			// They are sorted for the search above.
			slices.Sort(ordinals)
		}
		ordinals = ordinals[:min(len(ordinals), n)]
		return rows.Err()
	})
	return ordinals, err
}

// selects reports whether an ok answer is selected, by the number of the brand.
func (c *Choice) selects(f *Fact, brand int32) bool {
	// It stays zero if the answer does not show the brand.
	var found BrandFact
	if i := slices.IndexFunc(f.Brands, func(b BrandFact) bool { return b.Brand == brand }); i >= 0 {
		found = f.Brands[i]
	}
	return (c.Mentioned == nil || *c.Mentioned == (found.Mentions > 0)) && (c.Cited == nil || f.Known && *c.Cited == (found.Citations > 0))
}

// selectFactsAfter returns the facts that are counted at revision $4, of chunks that end after ordinal $3.
const selectFactsAfter = `
SELECT first_ordinal, facts FROM visibility_facts
WHERE account_id = $1 AND run_id = $2 AND last_ordinal > $3 AND (revision >= $4 OR deleted)
ORDER BY account_id, run_id, first_ordinal`
