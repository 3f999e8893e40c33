package telemetry

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Metrics counts the requests of a service by route and status, both of which are bounded. Other packages add their
// metrics by Also.
type Metrics struct {
	routes []routeMetrics
	names  []string // of routes
	also   []func(context.Context, *Exposition)
}

type routeMetrics struct {
	statuses [600]atomic.Uint64                   // requests by status; 0: without a response
	buckets  [len(bucketBounds) + 1]atomic.Uint64 // requests by time; the last one: above all bounds
	nanos    atomic.Int64                         // sum of the times
}

// bucketBounds are the upper bounds of the latency histogram.
var bucketBounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second,
}

// NewMetrics returns counters at zero for the routes with these names.
func NewMetrics(routes ...string) *Metrics {
	return &Metrics{routes: make([]routeMetrics, len(routes)), names: routes}
}

// Count counts a request. route is the index of its route in the arguments of NewMetrics; status is 0 without a
// response.
func (m *Metrics) Count(route, status int, took time.Duration) {
	r := &m.routes[route]
	r.statuses[status].Add(1)
	// The first bound that is not below the time.
	i, _ := slices.BinarySearch(bucketBounds[:], took)
	r.buckets[i].Add(1)
	r.nanos.Add(int64(took))
}

// Also adds metrics: write is called for each page. Also must be called before the first page.
func (m *Metrics) Also(write func(context.Context, *Exposition)) { m.also = append(m.also, write) }

// write writes a page of all metrics.
func (m *Metrics) write(ctx context.Context, e *Exposition) {
	m.writeRequests(e)
	for _, write := range m.also {
		write(ctx, e)
	}
}

// writeRequests writes the requests by route and status, and their times by route. Requests without a response count in
// the times only.
func (m *Metrics) writeRequests(e *Exposition) {
	e.Family("aiv_requests_total", "counter", "Requests served, by logical route and status.")
	for route := range m.routes {
		for status := range m.routes[route].statuses {
			// A route without errors of the server has 0: the growth of a series that does not exist cannot be computed.
			always := status == http.StatusInternalServerError || status == http.StatusServiceUnavailable
			if n := m.routes[route].statuses[status].Load(); n > 0 && status > 0 || always {
				e.Sample(float64(n), "route", m.names[route], "status", strconv.Itoa(status))
			}
		}
	}
	e.Family("aiv_request_seconds", "histogram", "Time from the header of a request to its response, by logical route.")
	for route := range m.routes {
		r := &m.routes[route]
		h := Histogram{Sum: time.Duration(r.nanos.Load()).Seconds()}
		for i := range r.buckets {
			h.Counts = append(h.Counts, r.buckets[i].Load())
		}
		for _, bound := range bucketBounds {
			h.Bounds = append(h.Bounds, bound.Seconds())
		}
		e.Histogram(h, "route", m.names[route])
	}
}
