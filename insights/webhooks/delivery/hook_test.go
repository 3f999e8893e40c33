package delivery

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A hook is a tracer of one statement.
type hook struct {
	sql   string                                // the statement, or a part that no other has
	start func(context.Context) context.Context // nil: does nothing
	end   func()                                // called when the result has been read; nil: does nothing
}

type hooked struct{}

func (h *hook) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(q.SQL, h.sql) {
		return ctx
	}
	if h.start != nil {
		ctx = h.start(ctx)
	}
	return context.WithValue(ctx, hooked{}, true)
}

func (h *hook) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(hooked{}) != nil && h.end != nil {
		h.end()
	}
}

// hookedPool returns a pool whose statements call the hook.
func (f *fixture) hookedPool(t *testing.T, h *hook) *pgxpool.Pool {
	t.Helper()
	config := f.Pool.Config()
	config.ConnConfig.Tracer = h
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// hookedDispatcher returns a dispatcher that does not run, whose statements call the hook.
func (f *fixture) hookedDispatcher(t *testing.T, h *hook) *Dispatcher {
	t.Helper()
	return New(Config{Pool: f.hookedPool(t, h), Master: f.master, AllowPrivate: true})
}
