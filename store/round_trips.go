package store

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

type tripsKey struct{}

// CountTrips returns a context that counts the round trips to the database that are waited for under it: each statement,
// batch and copy, and each trip of a lane, however many share that.
func CountTrips(ctx context.Context, n *atomic.Int32) context.Context {
	return context.WithValue(ctx, tripsKey{}, n)
}

func countTrip(ctx context.Context) {
	if n, ok := ctx.Value(tripsKey{}).(*atomic.Int32); ok {
		n.Add(1)
	}
}

// tripTracer has pgx tell of each round trip when it begins.
type tripTracer struct{}

func (tripTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	countTrip(ctx)
	return ctx
}

func (tripTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (tripTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	countTrip(ctx)
	return ctx
}

func (tripTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (tripTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (tripTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	countTrip(ctx)
	return ctx
}

func (tripTracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
