package store

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// A roundTripsKey is the key of the counter in a context.
type roundTripsKey struct{}

// CountRoundTrips returns a context that counts in n the round trips to the database made under it: each statement,
// pipeline and copy, and each batch of package batch, however many callers share it.
func CountRoundTrips(ctx context.Context, n *atomic.Int32) context.Context {
	return context.WithValue(ctx, roundTripsKey{}, n)
}

// AddRoundTrip counts one round trip under ctx.
func AddRoundTrip(ctx context.Context) {
	if n, ok := ctx.Value(roundTripsKey{}).(*atomic.Int32); ok {
		n.Add(1)
	}
}

// roundTripTracer counts each round trip of a pgx connection when it begins.
type roundTripTracer struct{}

func (roundTripTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	AddRoundTrip(ctx)
	return ctx
}

func (roundTripTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (roundTripTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	AddRoundTrip(ctx)
	return ctx
}

func (roundTripTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (roundTripTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (roundTripTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	AddRoundTrip(ctx)
	return ctx
}

func (roundTripTracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
