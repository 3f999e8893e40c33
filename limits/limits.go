// Package limits enforces the rate limit of each credential: it counts every request in the credential's current minute
// and admits as many as the limit allows, exactly, across any number of processes, restarts and crashes.
//
// It owns the table api_rate_limit_buckets. The gateway calls Admit once for each request; concurrent requests share a
// statement and a commit (package batch). Command aiv calls Purge.
package limits

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
	"aiv/store/batch"
)

// ErrUnknownKey is returned for a key without a valid credential: never issued, expired, disabled or revoked.
var ErrUnknownKey = errors.New("no valid credential has this key")

// Config contains what a Limiter depends on.
type Config struct {
	Pool       *pgxpool.Pool
	Counts     *pgxpool.Pool // for batches, from OpenCounts; nil: Pool
	Timeout    time.Duration // of one batch
	MaxWaiting int           // requests that may wait for the next batch; a quarter of them of one credential

	// CatalogRevision is a scalar SQL expression of type bigint. Each Admission has its value, so that the catalog
	// needs no round trip to learn whether it has changed.
	CatalogRevision string

	// WALPosition is a scalar SQL expression of type text, store.WALPosition. Each Admission has its value, by which a
	// read finds out whether a standby has all that was committed before the request. Empty: there is no standby.
	WALPosition string
}

// A Limiter counts requests.
type Limiter struct {
	cfg     Config
	cache   *auth.CredentialCache
	batcher *batch.Batcher[request, *Admission]
	spent   spent
	// SQL
	readState, countRequests string

	admitted, refused, unknown atomic.Uint64
}

// Stats reports what a Limiter has decided so far, and what its batchers have done.
type Stats struct {
	Admitted, Refused, Unknown uint64
	Counts, Lookups            batch.Stats // of requests, and of keys that are not cached
}

// Stats returns what l has done so far.
func (l *Limiter) Stats() Stats {
	return Stats{l.admitted.Load(), l.refused.Load(), l.unknown.Load(), l.batcher.Stats(), l.cache.Stats()}
}

// An Admission is the outcome of one counted request.
type Admission struct {
	Credential      *auth.Credential
	Admitted        bool
	Window          Window
	CatalogRevision int64
	WALPosition     string
}

// A Window is the minute in which a request was counted, by the database's clock.
type Window struct {
	Limit     int
	Remaining int
	End       time.Time
	Left      time.Duration // until End, when the request was counted
}

const (
	window = time.Minute

	// maxTogether bounds the requests of a batch, so that its result fits into the socket buffers: PostgreSQL sends it
	// before it commits, and a process that has stopped reading must not keep the rows locked.
	maxTogether = 1000

	// lockTimeout bounds how long a batch waits for a row that another session has locked. It is much longer than
	// another process's batch takes, even while a disk is slow, and short enough for the other credentials of the
	// batch.
	lockTimeout = 500 * time.Millisecond
)

// OpenCounts returns a pool for Config.Counts. Its only connection suffices, since only one batch is in flight at a
// time. The lock timeout is the session's: to set it for each batch would take another statement.
func OpenCounts(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	return store.OpenAnother(ctx, pool, 1, "lock_timeout", lockTimeout)
}

// New returns a Limiter. It has one batcher for all keys: two with half of the keys each served a fifth fewer requests,
// because a larger batch costs less for each request.
func New(cfg Config) *Limiter {
	cfg.Counts = cmp.Or(cfg.Counts, cfg.Pool)
	l := &Limiter{
		cfg: cfg, cache: auth.NewCredentialCache(cfg.Pool, cfg.Timeout, cfg.MaxWaiting),
		readState: readState(cfg.CatalogRevision), countRequests: countRequests(cfg.CatalogRevision, cmp.Or(cfg.WALPosition, "''")),
	}
	l.batcher = batch.New(batch.Config[request, *Admission]{
		Flush: func(ctx context.Context, in []request) ([]*Admission, error) { return l.admit(ctx, cfg.Counts, in) },
		Retry: func(ctx context.Context, in []request) ([]*Admission, error) { return l.admit(ctx, cfg.Pool, in) },
		// Some requests may already be counted: by the first count of decide, or on a lost server. They may be counted
		// twice, but are never admitted twice.
		RetryIndividually: store.MayConcernOneRow,
		Timeout:           cfg.Timeout, MaxWaiting: cfg.MaxWaiting, MaxWeight: maxTogether,
		Key: func(r request) any { return r.credential }, MaxPerKey: batch.PartOf(cfg.MaxWaiting),
	})
	return l
}

// A request waits to be counted. It is counted against the credential that its key has when the batch is flushed, which
// is almost always the one that was cached when the request arrived.
type request struct {
	key        auth.Hash
	credential *auth.Credential
}

// Admit counts one request against the key's credential. It returns ErrUnknownKey if there is none, and
// batch.ErrOverloaded if too many requests wait, in total or of this credential. In both cases nothing is counted.
//
// While the request is being counted, Admit calls whileCounted, unless that is nil, with the cached credential. The
// credential may have changed since, and the request may be refused. Admit does not call it if the credential's minute
// is known to be spent.
func (l *Limiter) Admit(ctx context.Context, key auth.Hash, whileCounted func(*auth.Credential)) (*Admission, error) {
	// Unknown keys are looked up separately, so that they never delay known ones.
	c, err := l.cache.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	var a *Admission
	if c != nil {
		counting, err := l.batcher.Start(ctx, request{key, c})
		if err != nil {
			return nil, err
		}
		if whileCounted != nil {
			if _, spent := l.spent.minute(c); !spent {
				whileCounted(c)
			}
		}
		if a, err = counting.Wait(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case a == nil:
		l.unknown.Add(1)
		return nil, ErrUnknownKey
	case a.Admitted:
		l.admitted.Add(1)
	default:
		l.refused.Add(1)
	}
	return a, nil
}

// Counts are kept for keepWindows: an operator can see a day of them, and a clock that steps back by less than a day
// still finds the counts of its minutes.
const keepWindows = 24 * time.Hour

// Purge deletes the counts of minutes older than a day, one minute at a time so that each transaction is short. It
// returns how many rows it deleted. It deletes nothing and returns a *store.ClockError if the clocks of the process and
// the database disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool) (rows int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, keepWindows)
	if err != nil {
		return 0, err
	}
	for {
		var oldest *time.Time
		if err := pool.QueryRow(ctx, oldestWindow, before).Scan(&oldest); err != nil || oldest == nil {
			return rows, err
		}
		tag, err := pool.Exec(ctx, deleteWindow, oldest)
		if err != nil {
			return rows, err
		}
		rows += tag.RowsAffected()
	}
}

// erase deletes the counts of an account, one credential at a time.
func erase(ctx context.Context, pool *pgxpool.Pool, _ string, account store.ID) (total int64, err error) {
	for n := int64(1); n > 0; total += n {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, eraseCounts, account)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
