package gateway

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Metrics counts what the gateway answered. Its labels are bounded: the routes of the table and none, the statuses of
// problemKinds and those of success.
//
// What else there is to tell, of the pool or of the lanes, others add: Also.
type Metrics struct {
	routes []routeMetrics // as routes, and one for none
	also   []func(context.Context, *Exposition)
}

type routeMetrics struct {
	statuses [len(statuses)]atomic.Uint64
	buckets  [len(bucketBounds) + 1]atomic.Uint64
	nanos    atomic.Int64
}

var statuses = [...]int{200, 202, 304, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503}

// bucketBounds are the upper bounds of the latency histogram.
var bucketBounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second,
}

// NewMetrics returns counters at zero.
func NewMetrics() *Metrics { return &Metrics{routes: make([]routeMetrics, len(routes)+1)} }

// answered counts a request of a route by its place in routes; those of no route stand after the last.
func (m *Metrics) answered(place, status int, took time.Duration) {
	r := &m.routes[place]
	if i := slices.Index(statuses[:], status); i >= 0 {
		r.statuses[i].Add(1)
	}
	i := 0
	for i < len(bucketBounds) && took > bucketBounds[i] {
		i++
	}
	r.buckets[i].Add(1)
	r.nanos.Add(int64(took))
}

// Also has write called whenever the metrics are asked for. It is to be called before they are.
func (m *Metrics) Also(write func(context.Context, *Exposition)) { m.also = append(m.also, write) }

// write writes all that there is to tell.
func (m *Metrics) write(ctx context.Context, e *Exposition) {
	e.Family("aiv_requests_total", "counter", "Requests answered, by logical route and status.")
	for place := range m.routes {
		for i, status := range statuses {
			if n := m.routes[place].statuses[i].Load(); n > 0 {
				e.Sample(float64(n), "route", routeNames[place], "status", strconv.Itoa(status))
			}
		}
	}
	e.Family("aiv_request_seconds", "histogram", "Time from a request's header to its answer, by logical route.")
	for place := range m.routes {
		r := &m.routes[place]
		h := Histogram{Sum: time.Duration(r.nanos.Load()).Seconds()}
		for i := range r.buckets {
			h.Counts = append(h.Counts, r.buckets[i].Load())
		}
		for _, bound := range bucketBounds {
			h.Bounds = append(h.Bounds, bound.Seconds())
		}
		e.Histogram(h, "route", routeNames[place])
	}
	for _, write := range m.also {
		write(ctx, e)
	}
}

// routeNames are the names of the routes, by their place, and that of none.
var routeNames = func() (names []string) {
	for i := range routes {
		names = append(names, routes[i].name())
	}
	return append(names, "none")
}()
