package delivery

import (
	"context"
	"strings"
	"testing"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
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

// hookedDispatcher returns a dispatcher that does not run, whose statements call the hook.
func (f *fixture) hookedDispatcher(t *testing.T, h *hook) *Dispatcher {
	t.Helper()
	return New(Config{Pool: storetest.WithTracer(t, f.Pool, h), Master: f.master, AllowPrivate: true, InFlight: 1024})
}
