package auth

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Version tells apart what a credential's row, its account's and its plan's have said: the transactions that wrote
// them (PostgreSQL's xmin), which differ after every change.
type Version struct{ Credential, Account, Plan uint32 }

// A Memory remembers the credentials of keys seen lately, so that a request need not read their words again, only that
// they still hold: whoever asks has read the current Version from the database.
type Memory struct {
	pool *pgxpool.Pool

	mu   sync.RWMutex
	seen map[Hash]remembered
}

type remembered struct {
	version    Version
	credential *Credential
}

// maxRemembered bounds a memory (about 5 MiB); beyond it, it starts anew.
const maxRemembered = 10_000

// NewMemory returns an empty memory.
func NewMemory(pool *pgxpool.Pool) *Memory {
	return &Memory{pool: pool, seen: make(map[Hash]remembered)}
}

// Credentials returns the credentials of the keys, which have the given versions now. It reads those that it does not
// know in these versions; one that has changed in the meantime is returned as it is then.
func (m *Memory) Credentials(ctx context.Context, keys []Hash, versions []Version) ([]*Credential, error) {
	found := make([]*Credential, len(keys))
	var missing [][]byte
	m.mu.RLock()
	for i := range keys {
		if r, ok := m.seen[keys[i]]; ok && r.version == versions[i] {
			found[i] = r.credential
		} else {
			missing = append(missing, keys[i][:])
		}
	}
	m.mu.RUnlock()
	if missing == nil {
		return found, nil
	}
	read, err := m.read(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if found[i] == nil {
			if found[i] = read[keys[i]].credential; found[i] == nil {
				return nil, fmt.Errorf("a credential has gone while its request was counted")
			}
		}
	}
	return found, nil
}

func (m *Memory) read(ctx context.Context, keys [][]byte) (map[Hash]remembered, error) {
	rows, err := m.pool.Query(ctx, describe, keys)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	read := make(map[Hash]remembered, len(keys))
	for rows.Next() {
		c := &Credential{encoded: new(atomic.Pointer[[]byte])}
		var hash []byte
		var v Version
		if err := rows.Scan(&hash, &c.ID, &c.AccountID, &c.Name, &c.KeyPrefix, &c.Scopes, &c.RateLimit, &c.Plan.Code,
			&c.Plan.Features, &v.Credential, &v.Account, &v.Plan); err != nil {
			return nil, err
		}
		read[Hash(hash)] = remembered{v, c}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen)+len(read) > maxRemembered {
		clear(m.seen)
	}
	for hash, r := range read {
		m.seen[hash] = r
	}
	return read, nil
}
