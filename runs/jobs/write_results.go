package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// settledColumns are the columns of job_results that settlements write. The row of a canceled job is written by the
// statement that deletes its lease.
var settledColumns = []string{"account_id", "run_id", "ordinal", "attempts", "settled", "started_at", "finished_at",
	"answer", "error_code", "error_message"}

// writeResults writes the results of the ledger. It uses COPY for any number of them, also on Citus: PostgreSQL writes
// copied rows a page at a time, and an INSERT from arrays takes twice as long for each job.
func (l *ledger) writeResults(ctx context.Context, conn *pgx.Conn) error {
	if len(l.results) == 0 {
		return nil
	}
	next := 0
	row := make([]any, len(settledColumns)) // with pointers, so that the values are not allocated
	var buf []byte
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"job_results"}, settledColumns, pgx.CopyFromFunc(func() ([]any, error) {
		if next == len(l.results) {
			return nil, nil
		}
		r := l.results[next]
		next++
		var answer *[]byte
		if r.answer != nil {
			buf = r.answer.AppendStored(buf[:0])
			answer = &buf
		}
		return append(row[:0], &r.key.Account, &r.key.Run, &r.key.Ordinal, &r.attempts, &r.settled, &r.startedAt, &l.now,
			answer, r.code, r.message), nil
	}))
	return err
}
