package auth

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/batch"
)

// A WorkerLookup finds workers by their tokens. It remembers a worker for rememberFor. A remembered worker may have
// been revoked: callers must check RevokedWorkersSQL in the transaction that uses the worker, and call Verify before
// they report an error. Then a revocation takes effect with the next request.
//
// Requests that arrive during one lookup share the next, so that lookups use at most one connection.
type WorkerLookup struct {
	pool    *pgxpool.Pool
	lookups *batch.Batcher[Hash, *Worker]

	mu    sync.RWMutex
	known map[Hash]knownWorker
}

// A knownWorker is a worker and the time until which it is remembered.
type knownWorker struct {
	worker *Worker
	until  time.Time
}

// Lookups also record last_seen_at, to the minute, so rememberFor is less than a minute.
const rememberFor = 30 * time.Second

// NewWorkerLookup returns a WorkerLookup. timeout bounds a lookup, maxWaiting the requests that wait for one.
func NewWorkerLookup(pool *pgxpool.Pool, timeout time.Duration, maxWaiting int) *WorkerLookup {
	l := &WorkerLookup{pool: pool, known: make(map[Hash]knownWorker)}
	l.lookups = batch.New(batch.Config[Hash, *Worker]{Flush: l.read, Timeout: timeout, MaxWaiting: maxWaiting, MaxWeight: maxWaiting})
	return l
}

// Find returns the worker with a token, which may have been revoked in the last 30 seconds. It returns ErrUnknownWorker
// for a token that is unknown or was revoked earlier.
func (l *WorkerLookup) Find(ctx context.Context, token Hash) (Worker, error) {
	l.mu.RLock()
	k, ok := l.known[token]
	l.mu.RUnlock()
	if ok && time.Now().Before(k.until) {
		return *k.worker, nil
	}
	return l.lookUp(ctx, token)
}

// Verify returns ErrUnknownWorker for a token that is unknown or revoked now.
func (l *WorkerLookup) Verify(ctx context.Context, token Hash) error {
	_, err := l.lookUp(ctx, token)
	return err
}

// lookUp reads the worker with a token, and records that it was seen.
func (l *WorkerLookup) lookUp(ctx context.Context, token Hash) (Worker, error) {
	w, err := l.lookups.Do(ctx, token)
	switch {
	case err != nil:
		return Worker{}, err
	case w == nil:
		return Worker{}, ErrUnknownWorker
	}
	return *w, nil
}

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
	if len(unseen) > 0 {
		if _, err := l.pool.Exec(ctx, seeWorkers, unseen); err != nil {
			return nil, err
		}
	}
	out := make([]*Worker, len(tokens))
	for i := range tokens {
		out[i] = found[tokens[i]]
	}
	l.remember(tokens, out)
	return out, nil
}

// remember remembers the workers found for tokens, nil for none, and forgets those whose time is over. Tokens without a
// worker are not remembered, so that invented ones take no memory.
func (l *WorkerLookup) remember(tokens []Hash, found []*Worker) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for token, k := range l.known {
		if now.After(k.until) {
			delete(l.known, token)
		}
	}
	for i, token := range tokens {
		if found[i] != nil {
			l.known[token] = knownWorker{found[i], now.Add(rememberFor)}
		} else {
			delete(l.known, token)
		}
	}
}
