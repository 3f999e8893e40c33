package visibility_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/visibility"
	"aiv/store/storetest"
)

// onStatement is a tracer that is called before each statement of a pool, and once before a batch with its statements
// together.
type onStatement func(conn *pgx.Conn, sql string)

func (f onStatement) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	f(conn, q.SQL)
	return ctx
}

func (f onStatement) TraceBatchStart(ctx context.Context, conn *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	var all strings.Builder
	for _, q := range b.Batch.QueuedQueries {
		all.WriteString(q.SQL + ";")
	}
	f(conn, all.String())
	return ctx
}

func (f onStatement) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (f onStatement) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (f onStatement) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// once calls f before the first statement that contains a text.
func once(text string, f func()) onStatement {
	var o sync.Once
	return func(_ *pgx.Conn, sql string) {
		if strings.Contains(sql, text) {
			o.Do(f)
		}
	}
}

// A killer ends the session of a pool before one of its statements, as a crash of the process does.
type killer struct {
	pool *pgxpool.Pool
	left atomic.Int64 // statements until then
}

func (s *site) newKiller(t *testing.T) *killer {
	k := &killer{}
	k.pool = storetest.WithTracer(t, s.plain, onStatement(func(conn *pgx.Conn, _ string) {
		if k.left.Add(-1) != 0 {
			return
		}
		var ended bool
		err := s.plain.QueryRow(context.Background(), `SELECT pg_terminate_backend($1, 60000)`, conn.PgConn().PID()).Scan(&ended)
		if err != nil || !ended {
			t.Errorf("end a session: %t, %v", ended, err)
		}
	}))
	return k
}

// TestStepsThatAreKilled ends the session of each kind of step before each of its statements. Reads are right at any
// time, and the next step goes on.
func TestStepsThatAreKilled(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about the sessions of one server")
	}
	for _, of := range []struct {
		name    string
		prepare func(*world, *testing.T) // what there is to do
		step    func(*testing.T, *visibility.Counter) error
	}{
		{"recount", (*world).raiseRevision, recount},
		{"backlog", (*world).forgetFacts, func(t *testing.T, c *visibility.Counter) error {
			if err := c.FindUncounted(t.Context()); err != nil {
				return err
			}
			return recount(t, c)
		}},
		{"merge", (*world).splitFacts, merge},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			w := newSettledWorld(t, true)
			k := w.newKiller(t)
			for n := int64(1); ; n++ {
				of.prepare(w, t)
				k.left.Store(n)
				c := newCounter(k.pool)
				killed := of.step(t, c)
				if killed == nil && n < 5 {
					t.Fatal("a step has hardly any statements")
				}
				w.checkSnapshot(t)
				k.left.Store(0)
				must(t, of.step(t, c))
				w.checkAllCounted(t)
				if killed == nil {
					break
				}
			}
			w.checkSnapshot(t)
			w.verify(t)
		})
	}
}

func recount(t *testing.T, c *visibility.Counter) error {
	_, err := c.Recount(t.Context())
	return err
}

func merge(t *testing.T, c *visibility.Counter) error {
	_, err := c.Merge(t.Context())
	return err
}
