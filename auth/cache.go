package auth

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/batch"
)

// A CredentialCache caches the credentials of recently seen keys, all read at the same revision. A caller that acts on
// cached credentials compares that revision with the database's (RevisionSQL). Unknown keys are not cached, so that
// invented keys cannot fill the cache.
type CredentialCache struct {
	pool    *pgxpool.Pool
	lookups *batch.Batcher[Hash, *Credential]

	mu          sync.RWMutex
	revision    int64
	credentials map[Hash]*Credential // that were valid when they were read
}

// maxCached bounds a cache to about 5 MiB. When it is full, an arbitrary half of the keys is dropped.
const maxCached = 10_000

// NewCredentialCache returns an empty cache. Keys that are not cached are looked up in batches, each bounded by
// timeout; maxWaiting bounds the keys that wait for a lookup.
func NewCredentialCache(pool *pgxpool.Pool, timeout time.Duration, maxWaiting int) *CredentialCache {
	c := &CredentialCache{pool: pool, credentials: make(map[Hash]*Credential)}
	c.lookups = batch.New(batch.Config[Hash, *Credential]{
		Flush: c.Read, Timeout: timeout, MaxWaiting: maxWaiting, MaxWeight: maxWaiting,
	})
	return c
}

// Stats returns the statistics of the lookups.
func (c *CredentialCache) Stats() batch.Stats { return c.lookups.Stats() }

// Find returns the credential of a key, from the cache or the database, or nil if it has no valid credential.
func (c *CredentialCache) Find(ctx context.Context, key Hash) (*Credential, error) {
	c.mu.RLock()
	found := c.credentials[key]
	c.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	return c.lookups.Do(ctx, key)
}

// Cached returns the cached credentials of the keys, nil for a key that is not cached, and their revision.
func (c *CredentialCache) Cached(keys []Hash) (revision int64, found []*Credential) {
	found = make([]*Credential, len(keys))
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range keys {
		found[i] = c.credentials[keys[i]]
	}
	return c.revision, found
}

// Read reads the credentials of the keys from the database and caches them. It returns nil for a key that has no valid
// credential.
func (c *CredentialCache) Read(ctx context.Context, keys []Hash) ([]*Credential, error) {
	hashes := make([][]byte, len(keys))
	for i := range keys {
		hashes[i] = keys[i][:]
	}
	// The revision is a column of each row, so both are of one snapshot.
	rows, err := c.pool.Query(ctx, readCredentials, hashes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var revision int64
	read := make(map[Hash]*Credential, len(keys))
	for rows.Next() {
		var one Credential
		var hash []byte
		if err := rows.Scan(&revision, &hash, &one.ID, &one.AccountID, &one.Name, &one.KeyPrefix, &one.Scopes, &one.RateLimit,
			&one.Plan.Code, &one.Plan.Features, &one.ExpiresAt, &one.JobsPerMonth, &one.MaxUnfinishedJobs); err != nil {
			return nil, err
		}
		read[Hash(hash)] = &one
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	c.update(revision, keys, read)
	found := make([]*Credential, len(keys))
	for i := range keys {
		found[i] = read[keys[i]]
	}
	return found, nil
}

// update caches the credentials that were read for keys, and drops the keys without one.
func (c *CredentialCache) update(revision int64, keys []Hash, read map[Hash]*Credential) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Without a row the revision is not known. Credentials of another revision may be out of date, so all are dropped.
	if len(read) > 0 && c.revision != revision {
		clear(c.credentials)
		c.revision = revision
	}
	// The order of a map is arbitrary.
	if len(c.credentials)+len(read) > maxCached {
		for key := range c.credentials {
			if len(c.credentials) <= maxCached/2 {
				break
			}
			delete(c.credentials, key)
		}
	}
	for _, key := range keys {
		if one := read[key]; one != nil {
			c.credentials[key] = one
		} else {
			delete(c.credentials, key)
		}
	}
}
