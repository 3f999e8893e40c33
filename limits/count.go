package limits

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/store"
)

// A tally counts the requests of one key in a batch. The first granted of them are admitted.
type tally struct {
	requests   int32
	taken      int32            // of requests, by next
	credential *auth.Credential // that the requests are counted against
	decided    bool
	decision
}

type decision struct {
	start   time.Time // of the window
	used    int       // of the window, with what was granted
	granted int       // of requests
	state
}

// state is the database's state when requests were decided.
type state struct {
	revision        int64 // of the credentials, from readState only
	now             time.Time
	catalogRevision int64
	walPosition     string // from countRequests only
}

// admit counts the requests of a batch, one for each key in asked. The result is nil for a key without a valid
// credential.
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

// decide counts by the cached credentials. If they have changed, or one is missing, it reads them and counts by what it
// has just read. That is later than any of these requests arrived, so no change is missed, and an operator who makes
// one change after another cannot keep requests waiting.
func (l *Limiter) decide(ctx context.Context, pool *pgxpool.Pool, keys []auth.Hash, tallies []tally) error {
	revision, credentials := l.cache.Cached(keys)
	if !slices.Contains(credentials, nil) {
		if err := l.count(ctx, pool, &revision, credentials, tallies); err != nil {
			return err
		}
		if !slices.ContainsFunc(tallies, func(t tally) bool { return !t.decided }) {
			return nil
		}
	}
	credentials, err := l.cache.Read(ctx, keys)
	if err != nil {
		return err
	}
	return l.count(ctx, pool, nil, credentials, tallies)
}

// count decides the tallies that are not decided yet, in one round trip. It decides nothing if a revision is given and
// is not the current one. It does not decide for a credential that has expired.
func (l *Limiter) count(ctx context.Context, pool *pgxpool.Pool, revision *int64, credentials []*auth.Credential, tallies []tally) error {
	spent, rest := l.split(revision, credentials, tallies)
	if len(spent)+len(rest) == 0 {
		return nil // unknown keys cost no second round trip
	}
	s, err := l.send(ctx, pool, revision, spent, rest)
	if err != nil {
		return err
	}
	for _, t := range rest {
		if t.used >= t.credential.RateLimit {
			l.spent.add(t.credential, t.start, t.start.Add(window).Sub(t.now))
		}
	}
	for _, t := range spent {
		c := t.credential
		if s.revision == *revision && s.now.Truncate(window).Equal(t.start) && (c.ExpiresAt == nil || c.ExpiresAt.After(s.now)) {
			t.decided, t.used, t.state = true, c.RateLimit, s
		}
	}
	return nil
}

// split returns the tallies to decide, with their credentials: those whose minute is known to be spent, with the
// minute, and the rest, in the order in which rows are locked. Without a revision, which the database would have to
// confirm, none is known to be spent.
func (l *Limiter) split(revision *int64, credentials []*auth.Credential, tallies []tally) (spent, rest []*tally) {
	for i, c := range credentials {
		t := &tallies[i]
		if c == nil || t.decided {
			continue
		}
		t.credential = c
		if start, ok := l.spent.minute(c); ok && revision != nil {
			t.start, spent = start, append(spent, t)
		} else {
			rest = append(rest, t)
		}
	}
	slices.SortFunc(rest, func(t, u *tally) int { return t.credential.ID.Compare(u.credential.ID) })
	return spent, rest
}

// send counts the rest, and reads the state if there are spent tallies. On Citus it always reads the state, and counts
// in a second round trip.
func (l *Limiter) send(ctx context.Context, pool *pgxpool.Pool, revision *int64, spent, rest []*tally) (s state, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return s, err
	}
	defer conn.Release()
	onCitus := store.IsCitus(conn.Conn())
	var statements pgx.Batch // one transaction
	if len(spent) > 0 || onCitus {
		statements.Queue(l.readState).QueryRow(func(row pgx.Row) error { return row.Scan(&s.revision, &s.now, &s.catalogRevision) })
	}
	if len(rest) > 0 && !onCitus {
		statements.Queue(l.countRequests, countArgs(rest, revision)...).Query(func(rows pgx.Rows) error {
			var d decision
			return scanCounts(rows, rest, &d, &d.now, &d.catalogRevision, &d.walPosition)
		})
	}
	err = conn.SendBatch(ctx, &statements).Close()
	if err == nil && onCitus && len(rest) > 0 && (revision == nil || s.revision == *revision) {
		err = countOnCitus(ctx, conn.Conn(), s, rest)
	}
	return s, err
}

func countArgs(rest []*tally, revision *int64) []any {
	n := len(rest)
	accounts, ids, limits, expiries, requests := make([]store.ID, n), make([]store.ID, n), make([]int32, n), make([]*time.Time, n), make([]int32, n)
	for i, t := range rest {
		c := t.credential
		accounts[i], ids[i], limits[i], expiries[i], requests[i] = c.AccountID, c.ID, int32(c.RateLimit), c.ExpiresAt, t.requests
	}
	return []any{accounts, ids, limits, expiries, requests, revision}
}

// scanCounts decides the tallies that have a row. It scans the columns of addCounts into d, and those after them into
// more.
func scanCounts(rows pgx.Rows, rest []*tally, d *decision, more ...any) error {
	byCredential := make(map[store.ID]*tally, len(rest))
	for _, t := range rest {
		byCredential[t.credential.ID] = t
	}
	var id store.ID
	_, err := pgx.ForEachRow(rows, append([]any{&id, &d.start, &d.used, &d.granted}, more...), func() error {
		t := byCredential[id]
		t.decided, t.decision = true, *d
		return nil
	})
	return err
}

// next returns the outcome of the next request of the tally.
func (t *tally) next() *Admission {
	if !t.decided {
		return nil
	}
	t.taken++
	taken := int(t.taken)
	used := t.used - t.granted + taken // at least the limit if this request is refused
	end := t.start.Add(window)
	return &Admission{
		Credential: t.credential, Admitted: taken <= t.granted, CatalogRevision: t.catalogRevision, WALPosition: t.walPosition,
		Window: Window{
			Limit: t.credential.RateLimit, Remaining: max(0, t.credential.RateLimit-used),
			End: end, Left: end.Sub(t.now),
		},
	}
}

// spent is the set of credentials that have used up the current minute. Their further requests of the minute are
// refused by a read. That is exact: a count only grows, and a changed limit makes a new *auth.Credential. In the same
// round trip the database confirms that the revision of the credentials and the minute are still the same.
type spent struct {
	mu          sync.Mutex
	start       time.Time // of the minute, by the database's clock
	until       time.Time // its end, by the process's clock: then a request is counted in the next minute at once
	credentials map[*auth.Credential]bool
}

// add records that c's minute is spent, and that the minute ends after left.
func (s *spent) add(c *auth.Credential, start time.Time, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !start.Equal(s.start) {
		s.start, s.until, s.credentials = start, time.Now().Add(left), make(map[*auth.Credential]bool)
	}
	s.credentials[c] = true
}

// minute returns the start of c's spent minute, unless that has ended.
func (s *spent) minute(c *auth.Credential) (start time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start, s.credentials[c] && time.Now().Before(s.until)
}
