package limits

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
)

// tally holds the requests of one key in a batch, and how they were decided. The first of them are admitted, as many as the
// window still allowed.
type tally struct {
	requests int32

	credential      *auth.Credential // nil: not decided, or not valid
	start           time.Time        // of the window
	used            int              // of the window, with what was granted
	granted         int              // of requests
	now             time.Time
	catalogRevision int64
	walPosition     string

	taken int32 // of requests, by next
}

// flush counts the requests of a batch. If it waited too long for a lock, it finds out whether the lock is on a credential's
// row or on what all credentials need.
func (l *Limiter) flush(ctx context.Context, asked []request) ([]*Admission, error) {
	out, err := l.admit(ctx, l.cfg.Counts, asked)
	if store.IsLockTimeout(err) {
		if _, err := l.cfg.Counts.Exec(ctx, l.readState); err != nil {
			return nil, &stateError{err}
		}
	}
	return out, err
}

// admit counts the requests of a batch, one for each key in asked. The result is nil for a key without a valid credential.
func (l *Limiter) admit(ctx context.Context, pool *pgxpool.Pool, asked []request) ([]*Admission, error) {
	index := make(map[auth.Hash]int, len(asked))
	keys, tallies := make([]auth.Hash, 0, len(asked)), make([]tally, 0, len(asked))
	for _, r := range asked {
		i, ok := index[r.key]
		if !ok {
			i = len(keys)
			index[r.key] = i
			keys, tallies = append(keys, r.key), append(tallies, tally{})
		}
		tallies[i].requests++
	}
	if err := l.decide(ctx, pool, keys, tallies); err != nil {
		return nil, err
	}
	out := make([]*Admission, len(asked))
	for i, r := range asked {
		out[i] = tallies[index[r.key]].next()
	}
	return out, nil
}

// decide counts by the cached credentials. If they have changed, or one is missing, it reads them and counts by what it has
// just read. That is later than any of these requests arrived, so no change is missed, and an operator who makes one change
// after another cannot keep requests waiting.
func (l *Limiter) decide(ctx context.Context, pool *pgxpool.Pool, keys []auth.Hash, tallies []tally) error {
	revision, credentials := l.cache.Cached(keys)
	if !slices.Contains(credentials, nil) {
		if err := l.count(ctx, pool, &revision, credentials, tallies); err != nil {
			return err
		}
		if !slices.ContainsFunc(tallies, func(t tally) bool { return t.credential == nil }) {
			return nil
		}
	}
	credentials, err := l.cache.Read(ctx, keys)
	if err != nil {
		return err
	}
	return l.count(ctx, pool, nil, credentials, tallies)
}

// count decides the tallies that are not decided yet, in one round trip. It decides nothing if a revision is given and is not
// the current one. It does not decide for a credential that has expired.
func (l *Limiter) count(ctx context.Context, pool *pgxpool.Pool, revision *int64, credentials []*auth.Credential, tallies []tally) error {
	spent := make(map[int]time.Time) // tallies of credentials whose minute is known to be spent, and the minute
	var order []int                  // the others, in the order in which rows are locked
	for i, c := range credentials {
		if c == nil || tallies[i].credential != nil {
			continue
		}
		if start, ok := l.spent.minute(c); ok && revision != nil {
			spent[i] = start
		} else {
			order = append(order, i)
		}
	}
	if len(spent)+len(order) == 0 {
		return nil
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := credentials[i], credentials[j]
		return cmp.Or(a.AccountID.Compare(b.AccountID), a.ID.Compare(b.ID))
	})
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	onCitus := store.IsCitus(conn.Conn())
	var present, catalogRevision int64
	var now time.Time
	var statements pgx.Batch // one transaction
	if len(spent) > 0 || onCitus {
		statements.Queue(l.readState).QueryRow(func(row pgx.Row) error { return row.Scan(&present, &now, &catalogRevision) })
	}
	if len(order) > 0 && !onCitus {
		statements.Queue(l.countRequests, countArgs(order, revision, credentials, tallies)...).Query(func(rows pgx.Rows) error {
			return scanCounts(rows, order, credentials, tallies)
		})
	}
	if err := conn.SendBatch(ctx, &statements).Close(); err != nil {
		return err
	}
	if onCitus && len(order) > 0 && (revision == nil || present == *revision) {
		if err := countOnCitus(ctx, conn.Conn(), now, catalogRevision, order, credentials, tallies); err != nil {
			return err
		}
	}
	for _, i := range order {
		if t := &tallies[i]; t.credential != nil && t.used >= t.credential.RateLimit {
			l.spent.add(t.credential, t.start, t.start.Add(window).Sub(t.now))
		}
	}
	if len(spent) == 0 || present != *revision {
		return nil
	}
	for i, start := range spent {
		if c := credentials[i]; now.Truncate(window).Equal(start) && (c.ExpiresAt == nil || c.ExpiresAt.After(now)) {
			t := &tallies[i]
			t.credential, t.start, t.used, t.now, t.catalogRevision = c, start, c.RateLimit, now, catalogRevision
		}
	}
	return nil
}

func countArgs(order []int, revision *int64, credentials []*auth.Credential, tallies []tally) []any {
	n := len(order)
	accounts, ids, limits, expiries, requests := make([]store.ID, n), make([]store.ID, n), make([]int32, n), make([]*time.Time, n), make([]int32, n)
	for k, i := range order {
		c := credentials[i]
		accounts[k], ids[k], limits[k], expiries[k], requests[k] = c.AccountID, c.ID, int32(c.RateLimit), c.ExpiresAt, tallies[i].requests
	}
	return []any{accounts, ids, limits, expiries, requests, revision}
}

// scanCounts reads the rows of countRequests. Some may be missing.
func scanCounts(rows pgx.Rows, order []int, credentials []*auth.Credential, tallies []tally) error {
	index := make(map[store.ID]int, len(order)) // in tallies
	for _, i := range order {
		index[credentials[i].ID] = i
	}
	for rows.Next() {
		var id store.ID
		var t tally
		if err := rows.Scan(&id, &t.start, &t.used, &t.granted, &t.now, &t.catalogRevision, &t.walPosition); err != nil {
			return err
		}
		i := index[id]
		t.credential, t.requests = credentials[i], tallies[i].requests
		tallies[i] = t
	}
	return rows.Err()
}

// next returns the outcome of the next request of the tally.
func (t *tally) next() *Admission {
	if t.credential == nil {
		return nil
	}
	t.taken++
	taken := int(t.taken)
	used := t.used - t.granted + min(taken, t.granted)
	end := t.start.Add(window)
	return &Admission{
		Credential: t.credential, Admitted: taken <= t.granted, CatalogRevision: t.catalogRevision, WALPosition: t.walPosition,
		Window: Window{
			Limit: t.credential.RateLimit, Remaining: max(0, t.credential.RateLimit-used),
			End: end.UTC(), Left: max(0, end.Sub(t.now)),
		},
	}
}

// causedByOneCredential reports whether err rolled back a batch and may be due to one of its credentials: a statement that failed, a
// row that another session has locked, a deadlock, a lost server of a cluster. Only the last leaves it open whether requests were
// counted; they may then be counted twice, but never admitted twice.
func causedByOneCredential(err error) bool {
	if _, ok := errors.AsType[*stateError](err); ok {
		return false
	}
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!store.IsUnavailable(err) || store.IsLockTimeout(err) || store.IsDeadlock(err) || store.LostServer(err))
}

// A stateError is an error that no credential of a batch is the cause of.
type stateError struct{ error }

func (e *stateError) Unwrap() error { return e.error }
