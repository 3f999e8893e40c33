package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// WithTracer returns a pool for the database of pool whose statements call the tracer.
func WithTracer(t testing.TB, pool *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	return reopen(t, pool, func(c *pgx.ConnConfig) { c.Tracer = tracer })
}

// WithIdleBound returns a pool for the database of pool whose sessions have the product's bound on idle transactions, which
// the URLs of tests lengthen.
func WithIdleBound(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	return reopen(t, pool, func(c *pgx.ConnConfig) { delete(c.RuntimeParams, "options") })
}

// reopen returns a pool for the database of pool with another configuration of its connections.
func reopen(t testing.TB, pool *pgxpool.Pool, change func(*pgx.ConnConfig)) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	change(config.ConnConfig)
	reopened, err := pgxpool.NewWithConfig(t.Context(), config)
	Must(t, err)
	t.Cleanup(reopened.Close)
	return reopened
}

// Statements is a tracer that records the statements that a pool sends, in the form that they have on Citus if the
// database has it.
type Statements struct {
	mu  sync.Mutex
	all []Statement
}

// A Statement was sent with arguments.
type Statement struct {
	SQL  string
	Args []any
}

// Taken returns the statements since the last call.
func (s *Statements) Taken() []Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.all
	s.all = nil
	return taken
}

func (s *Statements) add(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, Statement{sql, args})
}

// TraceQueryStart implements [pgx.QueryTracer].
func (s *Statements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	sql, args := q.SQL, q.Args
	for len(args) > 0 {
		if _, ok := args[0].(pgx.QueryExecMode); ok {
			args = args[1:]
			continue
		}
		if form, ok := args[0].(pgx.QueryRewriter); ok {
			sql, args, _ = form.RewriteQuery(ctx, conn, sql, args[1:])
		}
		break
	}
	s.add(sql, args)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (s *Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (s *Statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (s *Statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.add(q.SQL, q.Args)
}

// TraceBatchEnd implements [pgx.BatchTracer].
func (s *Statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// OnStatement is a tracer that calls Do before each statement, or batch of statements, for which Matches returns true.
type OnStatement struct {
	Matches func(sql string) bool
	Do      func(conn *pgx.Conn)
}

// TraceQueryStart implements [pgx.QueryTracer].
func (o OnStatement) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if o.Matches(q.SQL) {
		o.Do(conn)
	}
	return ctx
}

// TraceBatchStart implements [pgx.BatchTracer].
func (o OnStatement) TraceBatchStart(ctx context.Context, conn *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	var all strings.Builder
	for _, q := range b.Batch.QueuedQueries {
		all.WriteString(q.SQL + ";")
	}
	return o.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: all.String()})
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (OnStatement) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchQuery implements [pgx.BatchTracer].
func (OnStatement) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (OnStatement) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
