package jobs

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// settledColumns are the columns of job_results that settlements write, in the order of result.row. The row of a
// canceled job is written by the statement that deletes its lease.
var settledColumns = []string{"account_id", "run_id", "ordinal", "attempts", "settled", "started_at", "finished_at",
	"answer", "error_code", "error_message"}

var insertResult = `
INSERT INTO job_results (` + strings.Join(settledColumns, ", ") + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// minCopy is the number of results from which COPY takes less time than an INSERT for each, although it is one more
// round trip: PostgreSQL writes copied rows a page at a time.
const minCopy = 16

// writeResults writes the results of the ledger, or adds their statements to the batch.
func (l *ledger) writeResults(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	if len(l.results) < minCopy {
		for _, r := range l.results {
			var answer []byte
			b.Queue(insertResult, r.row(nil, l, &answer)...)
		}
		return nil
	}
	next := 0
	var row []any
	var answer []byte
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"job_results"}, settledColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if next == len(l.results) {
			return nil, nil
		}
		row = l.results[next].row(row[:0], l, &answer)
		next++
		return row, nil
	}))
	return err
}

// row appends the values of the columns, as pointers so that they are not allocated. It encodes the answer in the
// buffer, which may be reused after the row has been sent.
func (r *result) row(to []any, l *ledger, buf *[]byte) []any {
	var answer *[]byte
	if r.answer != nil {
		*buf = r.answer.AppendStored((*buf)[:0])
		answer = buf
	}
	return append(to, &r.key.Account, &r.key.Run, &r.key.Ordinal, &r.attempts, &r.settled, &r.startedAt, &l.now,
		answer, r.code, r.message)
}
