package gateway

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Metrics counts what the gateway answered. Its labels are bounded: the routes of the table and none, the statuses of
// problemKinds and those of success.
type Metrics struct {
	routes []routeMetrics // as routes, and one for none
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

// WriteTo writes the counters in Prometheus' text format.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("# HELP aiv_requests_total Requests answered, by logical route and status.\n# TYPE aiv_requests_total counter\n")
	for place := range m.routes {
		for i, status := range statuses {
			if n := m.routes[place].statuses[i].Load(); n > 0 {
				fmt.Fprintf(&b, "aiv_requests_total{route=%q,status=\"%d\"} %d\n", routeNames[place], status, n)
			}
		}
	}
	b.WriteString("# HELP aiv_request_seconds Time from a request's header to its answer, by logical route.\n# TYPE aiv_request_seconds histogram\n")
	for place := range m.routes {
		r, total := &m.routes[place], uint64(0)
		for i := range r.buckets {
			total += r.buckets[i].Load()
			bound := "+Inf"
			if i < len(bucketBounds) {
				bound = fmt.Sprint(bucketBounds[i].Seconds())
			}
			fmt.Fprintf(&b, "aiv_request_seconds_bucket{route=%q,le=%q} %d\n", routeNames[place], bound, total)
		}
		fmt.Fprintf(&b, "aiv_request_seconds_sum{route=%q} %g\n", routeNames[place], time.Duration(r.nanos.Load()).Seconds())
		fmt.Fprintf(&b, "aiv_request_seconds_count{route=%q} %d\n", routeNames[place], total)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// routeNames are the names of the routes, by their place, and that of none.
var routeNames = func() (names []string) {
	for i := range routes {
		names = append(names, routes[i].name())
	}
	return append(names, "none")
}()
