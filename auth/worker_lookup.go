package auth

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/batch"
)

// A WorkerLookup finds workers by their tokens, and records once a minute that they were seen. A worker that was found
// may be revoked while its request waits: callers check RevokedWorkersSQL in the transaction that uses the worker.
//
// Requests that arrive during one lookup share the next, so that lookups use at most one connection.
type WorkerLookup struct {
	pool    *pgxpool.Pool
	lookups *batch.Batcher[Hash, *Worker]
}

// NewWorkerLookup returns a WorkerLookup. timeout bounds a lookup, maxWaiting the requests that wait for one.
func NewWorkerLookup(pool *pgxpool.Pool, timeout time.Duration, maxWaiting int) *WorkerLookup {
	l := &WorkerLookup{pool: pool}
	l.lookups = batch.New(batch.Config[Hash, *Worker]{Flush: l.read, Timeout: timeout, MaxWaiting: maxWaiting, MaxWeight: maxWaiting})
	return l
}

// Find returns the worker with a token, or ErrUnknownWorker for a token that is unknown or revoked.
func (l *WorkerLookup) Find(ctx context.Context, token Hash) (Worker, error) {
	w, err := l.lookups.Do(ctx, token)
	switch {
	case err != nil:
		return Worker{}, err
	case w == nil:
		return Worker{}, ErrUnknownWorker
	}
	return *w, nil
}

// read finds the workers of a batch of tokens, nil for a token without one, and records which of them were seen.
func (l *WorkerLookup) read(ctx context.Context, tokens []Hash) ([]*Worker, error) {
	hashes := make([][]byte, len(tokens))
	found := make(map[Hash]*Worker, len(tokens))
	for i := range tokens {
		hashes[i] = tokens[i][:]
	}
	rows, err := l.pool.Query(ctx, findWorkers, hashes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var unseen []store.ID
	for rows.Next() {
		var hash []byte
		var seen bool
		w := &Worker{}
		if err := rows.Scan(&w.ID, &w.Name, &w.Providers, &w.CreatedAt, &w.RevokedAt, &w.LastSeenAt, &hash, &seen); err != nil {
			return nil, err
		}
		if found[Hash(hash)] = w; !seen {
			unseen = append(unseen, w.ID)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	// At most once a minute for each worker, so most lookups write nothing.
	if len(unseen) > 0 {
		if _, err := l.pool.Exec(ctx, seeWorkers, unseen); err != nil {
			return nil, err
		}
	}
	out := make([]*Worker, len(tokens))
	for i := range tokens {
		out[i] = found[tokens[i]]
	}
	return out, nil
}
