package gateway

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Metrics counts what the gateway answered. Its labels are bounded: the routes of the table and the statuses of
// problemKinds.
type Metrics struct {
	mu       sync.Mutex
	requests map[requestLabels]*requestCount
}

type requestLabels struct {
	route  string
	status int
}

type requestCount struct {
	total   uint64
	seconds float64
}

// NewMetrics returns counters at zero.
func NewMetrics() *Metrics {
	return &Metrics{requests: make(map[requestLabels]*requestCount)}
}

func (m *Metrics) answered(route string, status int, took time.Duration) {
	labels := requestLabels{route, status}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.requests[labels]
	if c == nil {
		c = new(requestCount)
		m.requests[labels] = c
	}
	c.total++
	c.seconds += took.Seconds()
}

// WriteTo writes the counters in Prometheus' text format.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("# HELP aiv_requests_total Requests answered, by logical route and status.\n# TYPE aiv_requests_total counter\n")
	m.mu.Lock()
	labels := make([]requestLabels, 0, len(m.requests))
	for l := range m.requests {
		labels = append(labels, l)
	}
	slices.SortFunc(labels, func(a, b requestLabels) int {
		if c := strings.Compare(a.route, b.route); c != 0 {
			return c
		}
		return a.status - b.status
	})
	for _, l := range labels {
		fmt.Fprintf(&b, "aiv_requests_total{route=%q,status=\"%d\"} %d\n", l.route, l.status, m.requests[l].total)
	}
	b.WriteString("# HELP aiv_request_seconds_total Time spent on requests, by logical route and status.\n# TYPE aiv_request_seconds_total counter\n")
	for _, l := range labels {
		fmt.Fprintf(&b, "aiv_request_seconds_total{route=%q,status=\"%d\"} %g\n", l.route, l.status, m.requests[l].seconds)
	}
	m.mu.Unlock()
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
