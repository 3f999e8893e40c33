// Package limits spends a credential's persistent minute: it admits or refuses each request, exactly, over any number of
// processes, restarts and crashes, and returns the credential whose minute it spent.
//
// It owns the table api_rate_limit_buckets. The gateway asks it once per request; whoever waits at the same time shares a
// statement and a commit (store.Lane).
package limits

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
)

// ErrUnknownKey is returned for a key that is no valid credential's now: never issued, expired, disabled or revoked.
var ErrUnknownKey = errors.New("no valid credential has this key")

// Config holds what a Limiter depends on.
type Config struct {
	Pool    *pgxpool.Pool
	Timeout time.Duration // of one round trip
	Waiting int           // how many requests may wait for the next one

	// Beside is a scalar SQL expression of type bigint that is read along with each admission, such as the catalog's
	// revision, so that who needs it needs no round trip of its own.
	Beside string
}

// A Limiter counts requests.
type Limiter struct {
	lane   *store.Lane[auth.Hash, *Admission]
	pool   *pgxpool.Pool
	memory *auth.Memory
	sql    string
}

// An Admission is the outcome of one counted request.
type Admission struct {
	Credential *auth.Credential
	Admitted   bool
	Window     Window
	Beside     int64
}

// A Window is a credential's current minute, by the database's clock.
type Window struct {
	Limit     int
	Remaining int
	End       time.Time
	Left      time.Duration // until End, at the time of counting
}

// New returns a limiter.
//
// It has one lane for all keys. Two, each with half the keys, were measured to serve a fifth fewer requests of many keys:
// a trip that carries more costs less a request.
func New(cfg Config) *Limiter {
	l := &Limiter{pool: cfg.Pool, memory: auth.NewMemory(cfg.Pool), sql: admit(cfg.Beside)}
	l.lane = store.NewLane(store.LaneConfig[auth.Hash, *Admission]{
		Trip: l.trip, Timeout: cfg.Timeout, Waiting: cfg.Waiting, Load: cfg.Waiting,
	})
	return l
}

// Admit counts one request against the key's credential. It returns ErrUnknownKey when there is none, and
// store.ErrOverloaded when too many requests wait already; in both cases nothing is counted.
func (l *Limiter) Admit(ctx context.Context, key auth.Hash) (*Admission, error) {
	a, err := l.lane.Do(ctx, key)
	if err == nil && a == nil {
		err = ErrUnknownKey
	}
	return a, err
}

// trip counts the requests of many callers in one statement: one row for each key, with the number of its requests. The
// first of a key's requests are admitted as far as there is room.
func (l *Limiter) trip(ctx context.Context, asked []auth.Hash) ([]*Admission, error) {
	place := make(map[auth.Hash]int, len(asked)) // of a key in the arrays sent
	keys, counts := make([][]byte, 0, len(asked)), make([]int32, 0, len(asked))
	for i := range asked {
		p, ok := place[asked[i]]
		if !ok {
			p = len(keys)
			place[asked[i]] = p
			keys, counts = append(keys, asked[i][:]), append(counts, 0)
		}
		counts[p]++
	}
	found, err := l.count(ctx, keys, counts)
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

// count runs the statement. It returns nothing for a key that is no valid credential's.
func (l *Limiter) count(ctx context.Context, keys [][]byte, counts []int32) ([]*counted, error) {
	rows, err := l.pool.Query(ctx, l.sql, keys, counts)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found, rowsFound := make([]*counted, len(keys)), make([]counted, 0, len(keys))
	hashes, versions := make([]auth.Hash, 0, len(keys)), make([]auth.Version, 0, len(keys))
	for rows.Next() {
		var c counted
		var v auth.Version
		var keyNo int
		if err := rows.Scan(&keyNo, &v.Credential, &v.Account, &v.Plan, &c.limit, &c.windowStart, &c.used, &c.granted, &c.now, &c.beside); err != nil {
			return nil, err
		}
		rowsFound = append(rowsFound, c)
		found[keyNo-1] = &rowsFound[len(rowsFound)-1]
		hashes, versions = append(hashes, auth.Hash(keys[keyNo-1])), append(versions, v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	credentials, err := l.memory.Credentials(ctx, hashes, versions)
	for i := range credentials {
		rowsFound[i].credential = credentials[i]
	}
	return found, err
}

// counted is a row of the statement: used is the window's count after it, granted what it added.
type counted struct {
	credential    *auth.Credential
	limit         int
	windowStart   time.Time
	used, granted int
	now           time.Time
	beside        int64

	given int // of this statement's requests
}

// next answers the next request of those that were counted together.
func (c *counted) next() *Admission {
	c.given++
	a := &Admission{Credential: c.credential, Admitted: c.given <= c.granted, Beside: c.beside}
	used := c.used - c.granted + min(c.given, c.granted)
	end := c.windowStart.Add(window)
	a.Window = Window{
		Limit: c.limit, Remaining: max(0, c.limit-used),
		End: end.UTC(), Left: end.Sub(c.now),
	}
	return a
}

const window = time.Minute
