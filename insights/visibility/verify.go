package visibility

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/store"
)

// Invariants returns the invariants of facts.
func (c *Counter) Invariants() []store.Invariant {
	return []store.Invariant{
		{Name: "facts_are_counted_on_runs", Doc: "A run has as many jobs with facts as its jobs_counted says, and no more than have ended.", Query: `
SELECT 'account ' || r.account_id || ' run ' || r.id || ': jobs_counted is ' || r.jobs_counted || ', facts have ' || COALESCE(f.jobs, 0)
FROM measurement_runs r LEFT JOIN (SELECT account_id, run_id, sum(jobs) AS jobs FROM visibility_facts GROUP BY account_id, run_id) f
  ON f.account_id = r.account_id AND f.run_id = r.id
WHERE r.jobs_counted <> COALESCE(f.jobs, 0) OR r.jobs_counted > r.jobs_completed + r.jobs_failed`},
		{Name: "facts_have_a_run", Doc: "Facts belong to a run.", Query: `
SELECT DISTINCT 'account ' || f.account_id || ' run ' || f.run_id
FROM visibility_facts f LEFT JOIN measurement_runs r ON r.account_id = f.account_id AND r.id = f.run_id WHERE r.id IS NULL`},
		{Name: "answers_have_facts", Doc: "A job that has ended has facts, or its run is in the backlog.", Query: `
SELECT 'account ' || r.account_id || ' run ' || r.id || ': ' || r.jobs_completed + r.jobs_failed - r.jobs_counted || ' jobs have no facts'
FROM measurement_runs r LEFT JOIN visibility_backlog l ON l.account_id = r.account_id AND l.run_id = r.id
WHERE r.jobs_counted < r.jobs_completed + r.jobs_failed AND l.run_id IS NULL`},
		{Name: "facts_of_ended_jobs", Doc: "Facts belong to ended jobs, name brands of the account, are not of a later revision, add up to the sums beside them, " +
			"and are marked as facts of deleted answers only if the answers are deleted.", Check: c.verifyFacts},
		{Name: "facts_equal_their_answers", Doc: "Facts equal the result of matching the stored answer again; 1,000 answers are matched.",
			Check: c.verifySample},
	}
}

// verifyFacts checks the facts of each run.
func (c *Counter) verifyFacts(ctx context.Context, tx pgx.Tx, report func(string)) error {
	var last runKey
	for {
		var of *brandsOfRuns // of the account whose runs are checked; read for each page, as Citus has no snapshot
		rows, err := tx.Query(ctx, `
SELECT DISTINCT account_id, run_id FROM visibility_facts WHERE (account_id, run_id) > ($1::uuid, $2::uuid) ORDER BY account_id, run_id LIMIT 500`,
			last.Account, last.Run)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[runKey])
		if err != nil || len(found) == 0 {
			return err
		}
		// last is also where the next page begins.
		for _, last = range found {
			if of == nil || of.account != last.Account {
				if of, err = readBrandsOfRuns(ctx, tx, last.Account); err != nil {
					return err
				}
			}
			if err := c.verifyRun(ctx, tx, last, of, report); err != nil {
				return err
			}
		}
	}
}

// brandsOfRuns are the brands of an account, by which the facts of its runs are checked.
type brandsOfRuns struct {
	account  store.ID
	known    []int32 // numbers
	isOwn    func(brand int32) bool
	revision int64
}

// readBrandsOfRuns reads what verifyRun compares facts with.
func readBrandsOfRuns(ctx context.Context, tx pgx.Tx, account store.ID) (of *brandsOfRuns, err error) {
	of = &brandsOfRuns{account: account}
	if of.known, err = numbersOf(ctx, tx, account); err != nil {
		return nil, err
	}
	if of.isOwn, err = ownBrands(ctx, tx, account); err != nil {
		return nil, err
	}
	_, of.revision, err = brands.ReadActive(ctx, tx, account)
	return of, err
}

// verifyRun checks the chunks of one run: their facts against the jobs that ended, and their sums against the facts.
func (c *Counter) verifyRun(ctx context.Context, tx pgx.Tx, k runKey, of *brandsOfRuns, report func(string)) error {
	say := func(format string, args ...any) {
		report(fmt.Sprintf("account %s run %s: ", k.Account.UUID(), k.Run.UUID()) + fmt.Sprintf(format, args...))
	}
	r, err := readRun(ctx, tx, k.Account, k.Run, "")
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // another invariant reports facts without a run
	}
	if err != nil {
		return err
	}
	ended, err := c.cfg.Ended(ctx, tx, k.Account, k.Run, 0, r.total)
	if err != nil {
		return err
	}
	// failed has a value for each job that ended with an answer or an error.
	failed := make(map[int32]bool, len(ended))
	for _, job := range ended {
		failed[job.Ordinal] = job.Failed
	}
	rows, err := tx.Query(ctx, `
SELECT first_ordinal, last_ordinal, jobs, revision, deleted, cells, sources, facts FROM visibility_facts
WHERE account_id = $1 AND run_id = $2 ORDER BY first_ordinal`, k.Account, k.Run)
	if err != nil {
		return err
	}
	seen := make(map[int32]bool)
	var deleted []int32 // ordinals of the jobs whose answers must be gone
	var row chunkRow
	_, err = pgx.ForEachRow(rows, []any{&row.first, &row.last, &row.jobs, &row.revision, &row.deleted, &row.cells, &row.sources, &row.facts}, func() error {
		facts, err := decodeFacts(row.facts)
		// A chunk that cannot be read does not end the check of the others.
		if err != nil || len(facts) == 0 {
			say("the facts from job %d on are damaged", row.first)
			return nil
		}
		if len(facts) != int(row.jobs) || facts[0].Ordinal != row.first || facts[len(facts)-1].Ordinal != row.last {
			say("the facts from job %d on do not cover %d jobs to job %d", row.first, row.jobs, row.last)
		}
		if row.revision > of.revision { // they would not be recounted
			say("the facts from job %d on are of revision %d, the brands of revision %d", row.first, row.revision, of.revision)
		}
		for i := range facts {
			f := &facts[i]
			// Only the first fault of a job is reported. A canceled job is not among the ended ones.
			isFailed, ok := failed[f.Ordinal]
			switch {
			case !ok:
				say("job %d has facts and has not ended", f.Ordinal)
			case isFailed != (f.Status == Failed):
				say("job %d has facts of another outcome", f.Ordinal)
			case seen[f.Ordinal]:
				say("job %d has facts twice", f.Ordinal)
			}
			seen[f.Ordinal] = true
			if row.deleted && f.Status == OK { // a chunk without ok answers that are stored is marked as a whole
				deleted = append(deleted, f.Ordinal)
			}
			for _, b := range f.Brands {
				if !slices.Contains(of.known, b.Brand) {
					say("job %d has facts of a brand that does not exist", f.Ordinal)
				}
			}
		}
		// Sums by older revisions may differ, because whether an answer is a gap depends on the brands of that time.
		sources, cells := sumSources(facts, r.repetitions, of.isOwn)
		if !bytes.Equal(row.cells, encodeCells(sumCells(facts, r.repetitions))) ||
			row.revision == of.revision && !bytes.Equal(row.sources, encodeSources(sources, cells)) {
			say("the facts from job %d on do not add up to their sums", row.first)
		}
		return nil
	})
	if err != nil || len(deleted) == 0 {
		return err
	}
	// Answers leaves out jobs without a stored answer, so each call of the function is a violation.
	return c.cfg.Answers(ctx, tx, k.Account, k.Run, deleted, func(stored []Job) error {
		for i := range stored {
			say("the facts of job %d are marked as facts of a deleted answer, and the answer is stored", stored[i].Ordinal)
		}
		return nil
	})
}

// numbersOf returns the numbers of all brands of an account, archived ones included.
func numbersOf(ctx context.Context, db store.Querier, account store.ID) ([]int32, error) {
	return store.Collect(ctx, db, pgx.RowTo[int32], `SELECT number FROM brands WHERE account_id = $1`, account)
}

// verifySample matches sampleSize stored answers again.
const sampleSize = 1000

// verifySample matches stored answers again. Only chunks of the present revision are compared: stale ones may differ,
// and frozen ones have no answers. An account that never had a brand has the revision 0.
func (c *Counter) verifySample(ctx context.Context, tx pgx.Tx, report func(string)) error {
	rows, err := tx.Query(ctx, `
SELECT f.account_id, f.run_id, f.first_ordinal, f.last_ordinal
FROM visibility_facts f JOIN measurement_runs r ON r.account_id = f.account_id AND r.id = f.run_id
LEFT JOIN brand_revisions b ON b.account_id = f.account_id
WHERE NOT f.deleted AND f.revision = COALESCE(b.revision, 0) ORDER BY md5(f.run_id::text || f.first_ordinal) LIMIT $1`, sampleSize)
	if err != nil {
		return err
	}
	type key struct {
		Account, Run store.ID
		First, Last  int32
	}
	chunks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil {
		return err
	}
	// left is the number of answers that may still be matched. The chunks are in an order that looks random and is
	// always the same.
	left := sampleSize
	for _, k := range chunks {
		if left <= 0 {
			break
		}
		b, err := c.brands(ctx, tx, k.Account)
		if err != nil {
			return err
		}
		var column []byte
		// The facts are read one chunk at a time, to bound memory.
		err = tx.QueryRow(ctx, `
SELECT facts FROM visibility_facts WHERE account_id = $1 AND run_id = $2 AND first_ordinal = $3 AND last_ordinal = $4 AND revision = $5`,
			k.Account, k.Run, k.First, k.Last, b.version.Revision).Scan(&column)
		var r *countedRun
		if err == nil {
			r, err = c.run(ctx, tx, k.Account, k.Run)
		}
		// On Citus there is no snapshot: chunks may have been merged or recounted, and runs purged, since they were listed.
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		facts, err := decodeFacts(column)
		if err != nil {
			continue // verifyFacts reports it
		}
		byOrdinal := make(map[int32]*Fact)
		var ordinals []int32
		for i := range facts {
			if facts[i].Status != Failed && left > 0 {
				byOrdinal[facts[i].Ordinal] = &facts[i]
				ordinals = append(ordinals, facts[i].Ordinal)
				left--
			}
		}
		err = c.cfg.Answers(ctx, tx, k.Account, k.Run, ordinals, func(stored []Job) error {
			// Equal facts have equal bytes, so their encodings are compared.
			for _, again := range c.count(b, r, stored) {
				if !bytes.Equal(encodeFacts([]Fact{again}), encodeFacts([]Fact{*byOrdinal[again.Ordinal]})) {
					report(fmt.Sprintf("account %s run %s: job %d", k.Account.UUID(), k.Run.UUID(), again.Ordinal))
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("account %s run %s: %w", k.Account.UUID(), k.Run.UUID(), err)
		}
	}
	return nil
}
