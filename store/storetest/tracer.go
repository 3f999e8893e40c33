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

// A tracer ignores everything. Other tracers contain it.
type tracer struct{}

func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// Statements is a tracer that records the statements that a pool sends, in the form that they have on Citus if the
// database has it. Its methods may be called by several goroutines.
type Statements struct {
	tracer
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

// TraceQueryStart records a statement.
func (s *Statements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	sql, args := q.SQL, q.Args
	if len(args) > 0 {
		// pgx takes options from the beginning of the arguments.
		if _, ok := args[0].(pgx.QueryExecMode); ok {
			args = args[1:]
		}
	}
	if len(args) > 0 {
		// A form on Citus replaces the statement, as it does when pgx sends it.
		if form, ok := args[0].(pgx.QueryRewriter); ok {
			sql, args, _ = form.RewriteQuery(ctx, conn, sql, args[1:])
		}
	}
	s.add(sql, args)
	return ctx
}

// TraceBatchQuery records a statement of a batch.
func (s *Statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.add(q.SQL, q.Args)
}

// OnStatement is a tracer that calls Do before each statement, or batch of statements, for which Matches returns true.
type OnStatement struct {
	tracer
	Matches func(sql string) bool
	Do      func(conn *pgx.Conn)
}

// TraceQueryStart calls Do.
func (o OnStatement) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if o.Matches(q.SQL) {
		o.Do(conn)
	}
	return ctx
}

// TraceBatchStart calls Do for the statements of a batch.
func (o OnStatement) TraceBatchStart(ctx context.Context, conn *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	var all strings.Builder
	// A batch is sent at once, so it is matched as one text.
	for _, q := range b.Batch.QueuedQueries {
		all.WriteString(q.SQL + ";")
	}
	return o.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: all.String()})
}
