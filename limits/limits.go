// Package limits spends a credential's persistent minute: it admits or refuses each request, exactly, over any number of
// processes, restarts and crashes, and returns the credential whose minute it spent.
//
// It owns the table api_rate_limit_buckets. The gateway asks it once per request; whoever waits at the same time shares a
// statement and a commit (store.Lane).
package limits

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
	"aiv/store/batch"
)

// ErrUnknownKey is returned for a key that is no valid credential's now: never issued, expired, disabled or revoked.
var ErrUnknownKey = errors.New("no valid credential has this key")

// Config holds what a Limiter depends on.
type Config struct {
	Pool       *pgxpool.Pool
	Timeout    time.Duration // of one round trip
	MaxWaiting int           // how many requests may wait for the next one

	// Beside is a scalar SQL expression of type bigint that is read along with each admission, such as the catalog's
	// revision, so that who needs it needs no round trip of its own.
	CatalogRevision string
}

// A Limiter counts requests.
type Limiter struct {
	lane   *batch.Batcher[auth.Hash, *Admission]
	pool   *pgxpool.Pool
	memory *auth.CredentialCache
	sql    string

	admitted, refused, unknown atomic.Uint64
}

// Stats tells what a limiter has decided so far, and what its lanes have done.
type Stats struct {
	Admitted, Refused, Unknown uint64
	Counts, Lookups            batch.Stats // the lane that counts requests, and the one that looks up keys
}

// Stats returns what has been decided so far.
func (l *Limiter) Stats() Stats {
	return Stats{l.admitted.Load(), l.refused.Load(), l.unknown.Load(), l.lane.Stats(), l.memory.Stats()}
}

// An Admission is the outcome of one counted request.
type Admission struct {
	Credential      *auth.Credential
	Admitted        bool
	Window          Window
	CatalogRevision int64
}

// A Window is a credential's current minute, by the database's clock.
type Window struct {
	Limit     int
	Remaining int
	End       time.Time
	Left      time.Duration // until End, at the time of counting
}

// maxTogether bounds the requests of a trip, so that its result fits into what the system holds for a connection: PostgreSQL
// sends it before it commits, and a process that reads no more must not keep the rows locked.
const maxTogether = 1000

// New returns a limiter.
//
// It has one lane for all keys. Two, each with half the keys, were measured to serve a fifth fewer requests of many keys:
// a trip that carries more costs less a request.
func New(cfg Config) *Limiter {
	l := &Limiter{pool: cfg.Pool, memory: auth.NewCredentialCache(cfg.Pool, cfg.Timeout, cfg.MaxWaiting), sql: admit(cfg.CatalogRevision)}
	l.lane = batch.New(batch.Config[auth.Hash, *Admission]{
		Flush: l.trip, Timeout: cfg.Timeout, MaxWaiting: cfg.MaxWaiting, MaxWeight: maxTogether,
	})
	return l
}

// Admit counts one request against the key's credential. It returns ErrUnknownKey when there is none, and
// batch.ErrOverloaded when too many requests wait already; in both cases nothing is counted.
func (l *Limiter) Admit(ctx context.Context, key auth.Hash) (*Admission, error) {
	// A key that nobody has costs those that somebody has nothing: it is read, in a lane of its own, and not counted.
	c, err := l.memory.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	var a *Admission
	if c != nil {
		if a, err = l.lane.Do(ctx, key); err != nil {
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

// trip counts the requests of many callers in one statement: one row for each key, with the number of its requests. The
// first of a key's requests are admitted as far as there is room.
func (l *Limiter) trip(ctx context.Context, asked []auth.Hash) ([]*Admission, error) {
	place := make(map[auth.Hash]int, len(asked)) // of a key among the different ones
	keys, requests := make([]auth.Hash, 0, len(asked)), make([]int32, 0, len(asked))
	for i := range asked {
		p, ok := place[asked[i]]
		if !ok {
			p = len(keys)
			place[asked[i]] = p
			keys, requests = append(keys, asked[i]), append(requests, 0)
		}
		requests[p]++
	}
	found, err := l.spend(ctx, keys, requests)
	if err != nil {
		return nil, err
	}
	out := make([]*Admission, len(asked))
	for i := range asked {
		if c := found[place[asked[i]]]; c != nil {
			out[i] = c.next()
		}
	}
	return out, nil
}

// spend counts the requests of the keys by what is remembered of them. If that has changed, or is not all that is needed, it
// reads them, and counts by what it has just read: that is later than any of these requests came, so no change can be
// missed, and whoever goes on making changes can't keep them waiting. It returns nothing for a key that is no valid
// credential's.
func (l *Limiter) spend(ctx context.Context, keys []auth.Hash, requests []int32) ([]*counted, error) {
	revision, credentials := l.memory.Remembered(keys)
	if !slices.Contains(credentials, nil) {
		if found, err := l.count(ctx, &revision, credentials, requests); err != nil || !none(found) {
			return found, err
		}
	}
	_, credentials, err := l.memory.Read(ctx, keys)
	if err != nil || none(credentials) {
		return make([]*counted, len(keys)), err
	}
	return l.count(ctx, nil, credentials, requests)
}

func none[T any](all []*T) bool {
	return !slices.ContainsFunc(all, func(one *T) bool { return one != nil })
}

// count runs the statement. It returns nothing for a credential that has expired, nor for any if a revision is given and is
// not the present one.
func (l *Limiter) count(ctx context.Context, revision *int64, credentials []*auth.Credential, requests []int32) ([]*counted, error) {
	order := make([]int, 0, len(credentials)) // in which rows are locked
	for i, c := range credentials {
		if c != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := credentials[i], credentials[j]
		return cmp.Or(bytes.Compare(a.AccountID[:], b.AccountID[:]), bytes.Compare(a.ID[:], b.ID[:]))
	})
	n := len(order)
	accounts, ids, limits, expiries, asked := make([]store.ID, n), make([]store.ID, n), make([]int32, n), make([]*time.Time, n), make([]int32, n)
	for k, i := range order {
		c := credentials[i]
		accounts[k], ids[k], limits[k], expiries[k], asked[k] = c.AccountID, c.ID, int32(c.RateLimit), c.ExpiresAt, requests[i]
	}
	rows, err := l.pool.Query(ctx, l.sql, accounts, ids, limits, expiries, asked, revision)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make([]*counted, len(credentials))
	for rows.Next() {
		c := new(counted)
		var id store.ID
		if err := rows.Scan(&id, &c.windowStart, &c.used, &c.granted, &c.now, &c.catalogRevision); err != nil {
			return nil, err
		}
		for credentials[order[0]].ID != id { // rows come in the order of the arrays
			order = order[1:]
		}
		c.credential = credentials[order[0]]
		found[order[0]] = c
	}
	return found, rows.Err()
}

// counted is a row of the statement: used is the window's count after it, granted what it added.
type counted struct {
	credential      *auth.Credential
	windowStart     time.Time
	used, granted   int
	now             time.Time
	catalogRevision int64

	given int // of this statement's requests
}

// next answers the next request of those that were counted together.
func (c *counted) next() *Admission {
	c.given++
	a := &Admission{Credential: c.credential, Admitted: c.given <= c.granted, CatalogRevision: c.catalogRevision}
	used := c.used - c.granted + min(c.given, c.granted)
	end := c.windowStart.Add(window)
	a.Window = Window{
		Limit: c.credential.RateLimit, Remaining: max(0, c.credential.RateLimit-used),
		End: end.UTC(), Left: end.Sub(c.now),
	}
	return a
}

const window = time.Minute
