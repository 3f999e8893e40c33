package visibility

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Bounds of a chunk, in jobs. Chunks that are smaller than smallChunk are merged, as a chunk of one answer takes
// several times the space of an answer in a larger chunk.
const (
	maxChunk   = 2000
	smallChunk = 64
)

// A chunkRow is a row of visibility_facts to insert. Its jobs have ordinals from first to last, but other chunks of
// the run may have jobs in between.
type chunkRow struct {
	account, run store.ID
	first, last  int32
	jobs         int32
	revision     int64
	deleted      bool
	small        bool // to be merged
	cells        []byte
	sources      []byte
	facts        []byte
}

// newChunks sorts facts of a run and returns their chunks. If whole is true, even small chunks are not merged later.
func newChunks(r *countedRun, revision int64, facts []Fact, isOwn func(int32) bool, deleted, whole bool) (rows []chunkRow) {
	// The sums and the encoding need ascending ordinals.
	slices.SortFunc(facts, func(a, b Fact) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for part := range slices.Chunk(facts, maxChunk) {
		// A chunk is never updated, except to mark it as deleted. So its sums always fit its facts.
		sources, cells := sumSources(part, r.repetitions, isOwn)
		rows = append(rows, chunkRow{
			account: r.account, run: r.id, first: part[0].Ordinal, last: part[len(part)-1].Ordinal, jobs: int32(len(part)), revision: revision,
			// A chunk with all jobs of its run has nothing to be merged with.
			deleted: deleted, small: !whole && len(part) < smallChunk && int32(len(part)) < r.total,
			cells: encodeCells(sumCells(part, r.repetitions)), sources: encodeSources(sources, cells), facts: encodeFacts(part),
		})
	}
	return rows
}

// batchChunks adds the statement that inserts chunks. One statement inserts the chunks of all runs and accounts, from
// arrays.
func batchChunks(b *pgx.Batch, rows []chunkRow) {
	if len(rows) == 0 {
		return
	}
	var accounts, runs []store.ID
	var first, last, jobs []int32
	var revisions []int64
	var deleted, small []bool
	var cells, sources, facts [][]byte
	for i := range rows {
		r := &rows[i]
		accounts, runs = append(accounts, r.account), append(runs, r.run)
		first, last, jobs = append(first, r.first), append(last, r.last), append(jobs, r.jobs)
		revisions, deleted, small = append(revisions, r.revision), append(deleted, r.deleted), append(small, r.small)
		cells, sources, facts = append(cells, r.cells), append(sources, r.sources), append(facts, r.facts)
	}
	b.Queue(insertChunks, accounts, runs, first, last, jobs, revisions, deleted, small, cells, sources, facts)
}

const insertChunks = `
INSERT INTO visibility_facts (account_id, run_id, first_ordinal, last_ordinal, jobs, revision, deleted, small, cells, sources, facts)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::bigint[], $7::boolean[], $8::boolean[],
  $9::bytea[], $10::bytea[], $11::bytea[])`

// DeleteAnswers marks the facts of answers that the transaction deletes because of their age: they cannot be recounted
// any more. The transaction has locked the run FOR UPDATE, so no recount or merge replaces chunks of the run before it
// ends; lockCountedRun skips the run.
func DeleteAnswers(ctx context.Context, tx store.Tx, account, run store.ID, ordinals []int32) error {
	if len(ordinals) == 0 {
		return nil
	}
	// gone are the jobs whose answers are deleted.
	gone := make(map[int32]bool, len(ordinals))
	for _, ordinal := range ordinals {
		gone[ordinal] = true
	}
	// Only what newChunks uses is set, here and from the rows below.
	r := &countedRun{account: account, id: run}
	rows, err := tx.Query(ctx, lockKept, account, run, slices.Min(ordinals), slices.Max(ordinals))
	if err != nil {
		return err
	}
	type kept struct {
		first, last int32
		revision    int64
		column      []byte
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k kept, err error) {
		return k, row.Scan(&k.first, &k.last, &k.revision, &k.column, &r.repetitions, &r.total)
	})
	if err != nil || len(found) == 0 {
		return err
	}
	isOwn, err := ownBrands(ctx, tx, account)
	if err != nil {
		return err
	}
	var b pgx.Batch
	for _, k := range found {
		facts, err := decodeFacts(k.column)
		if err != nil {
			return err
		}
		// Only ok answers are recounted. A chunk that keeps none of them can be marked as a whole.
		isKept := func(f Fact) bool { return f.Status == OK && !gone[f.Ordinal] }
		if !slices.ContainsFunc(facts, isKept) {
			b.Queue(markDeleted, account, run, k.first, k.last)
			continue
		}
		// The chunk is divided into a frozen one and one that can still be recounted.
		var deleted []Fact
		rest := slices.DeleteFunc(facts, func(f Fact) bool {
			if gone[f.Ordinal] {
				deleted = append(deleted, f)
			}
			return gone[f.Ordinal]
		})
		// The range of the chunk overlaps the ordinals, but it has none of these jobs.
		if len(deleted) == 0 {
			continue
		}
		b.Queue(deleteChunk, account, run, k.first, k.last)
		batchChunks(&b, slices.Concat(newChunks(r, k.revision, deleted, isOwn, true, true), newChunks(r, k.revision, rest, isOwn, false, true)))
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &b).Close()
}

const (
	// lockKept locks the chunks of a run that have jobs between two ordinals and whose answers are not deleted.
	lockKept = `
SELECT f.first_ordinal, f.last_ordinal, f.revision, f.facts, r.repetitions, r.total_jobs
FROM visibility_facts f JOIN measurement_runs r ON r.account_id = f.account_id AND r.id = f.run_id
WHERE f.account_id = $1 AND r.account_id = $1 AND f.run_id = $2 AND f.first_ordinal <= $4 AND f.last_ordinal >= $3 AND NOT f.deleted
ORDER BY f.first_ordinal FOR UPDATE OF f`

	markDeleted = `UPDATE visibility_facts SET deleted = true
WHERE account_id = $1 AND run_id = $2 AND first_ordinal = $3 AND last_ordinal = $4`

	deleteChunk = `DELETE FROM visibility_facts WHERE account_id = $1 AND run_id = $2 AND first_ordinal = $3 AND last_ordinal = $4`
)

// ownBrands returns a function that reports whether a number is of an active own brand of the account.
func ownBrands(ctx context.Context, db store.Querier, account store.ID) (func(brand int32) bool, error) {
	rows, err := db.Query(ctx, `SELECT number FROM brands WHERE account_id = $1 AND kind = 'own' AND status = 'active'`, account)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	return func(brand int32) bool { return slices.Contains(numbers, brand) }, err
}
