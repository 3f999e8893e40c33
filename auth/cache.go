package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/batch"
)

// A CredentialCache keeps the credentials of keys seen lately, all as they were in one revision. Whether that is still the
// revision, the database tells whoever acts on them (RevisionSQL). It remembers valid keys only, so that nobody can fill it
// with keys that he made up.
type CredentialCache struct {
	pool  *pgxpool.Pool
	reads *batch.Batcher[Hash, *Credential]

	mu       sync.RWMutex
	revision int64
	seen     map[Hash]*Credential
}

// maxRemembered bounds a memory (about 5 MiB); beyond it, half of the keys are forgotten, whichever they are.
const maxRemembered = 10_000

// NewCredentialCache returns an empty memory. Keys that it does not know are read many at a time, in round trips of at most the
// timeout, while so many wait.
func NewCredentialCache(pool *pgxpool.Pool, timeout time.Duration, waiting int) *CredentialCache {
	m := &CredentialCache{pool: pool, seen: make(map[Hash]*Credential)}
	m.reads = batch.New(batch.Config[Hash, *Credential]{
		Flush: func(ctx context.Context, keys []Hash) ([]*Credential, error) {
			_, found, err := m.Read(ctx, keys)
			return found, err
		},
		Timeout: timeout, MaxWaiting: waiting, MaxWeight: waiting,
	})
	return m
}

// Stats tells of the lane in which keys are read that are not remembered.
func (m *CredentialCache) Stats() batch.Stats { return m.reads.Stats() }

// Find returns what the key stands for, as it is remembered or, if it is not, as the database has it; nil for a key that is
// no valid credential's.
func (m *CredentialCache) Find(ctx context.Context, key Hash) (*Credential, error) {
	m.mu.RLock()
	c := m.seen[key]
	m.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	return m.reads.Do(ctx, key)
}

// Cached returns the credentials of the keys and the revision in which they are so; nil for a key that is not known.
func (m *CredentialCache) Cached(keys []Hash) (revision int64, found []*Credential) {
	found = make([]*Credential, len(keys))
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i := range keys {
		found[i] = m.seen[keys[i]]
	}
	return m.revision, found
}

// Read returns what the keys stand for now, and the revision in which they do, and remembers it; nil for a key that is no
// valid credential's.
func (m *CredentialCache) Read(ctx context.Context, keys []Hash) (revision int64, found []*Credential, err error) {
	hashes := make([][]byte, len(keys))
	for i := range keys {
		hashes[i] = keys[i][:]
	}
	rows, err := m.pool.Query(ctx, describe, hashes)
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	read := make(map[Hash]*Credential, len(keys))
	for rows.Next() {
		c := &Credential{encoded: new(atomic.Pointer[[]byte])}
		var hash []byte
		if err := rows.Scan(&revision, &hash, &c.ID, &c.AccountID, &c.Name, &c.KeyPrefix, &c.Scopes, &c.RateLimit, &c.Plan.Code,
			&c.Plan.Features, &c.ExpiresAt, &c.JobsPerMonth, &c.MaxUnfinishedJobs); err != nil {
			return 0, nil, err
		}
		read[Hash(hash)] = c
	}
	if err := rows.Err(); err != nil {
		return 0, nil, err
	}
	m.remember(revision, keys, read)
	found = make([]*Credential, len(keys))
	for i := range keys {
		found[i] = read[keys[i]]
	}
	return revision, found, nil
}

// remember takes in what was read of the keys, and forgets those of them that were not found.
func (m *CredentialCache) remember(revision int64, keys []Hash, read map[Hash]*Credential) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(read) > 0 && m.revision != revision {
		clear(m.seen)
		m.revision = revision
	}
	if len(m.seen)+len(read) > maxRemembered {
		for key := range m.seen {
			if len(m.seen) <= maxRemembered/2 {
				break
			}
			delete(m.seen, key)
		}
	}
	for _, key := range keys {
		if c := read[key]; c != nil {
			m.seen[key] = c
		} else {
			delete(m.seen, key)
		}
	}
}
