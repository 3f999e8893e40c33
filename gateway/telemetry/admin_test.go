package telemetry

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestAdminIsLocal: no web page can use the admin listener through an operator's browser.
func TestAdminIsLocal(t *testing.T) {
	t.Parallel()
	cfg := AdminConfig{Metrics: NewMetrics(), Level: new(slog.LevelVar), Hosts: []string{"metrics.internal"},
		Ready: func(context.Context) error { return nil }}
	const here = "127.0.0.1:9090"
	for _, test := range []struct {
		want         int
		method, path string
		hosts        []string
		header       string // NAME: VALUE
		body         string
	}{
		{200, "GET", "/livez", []string{here, "[::1]:9090", "localhost:9090", "LOCALHOST", "Metrics.Internal:9090"}, "", ""},
		{421, "GET", "/livez", []string{"evil.example", "localhost.evil.example:9090", "127.0.0.1.evil.example", ""}, "", ""},
		{421, "PUT", "/log-level", []string{"evil.example"}, "", "error"},
		{200, "GET", "/metrics", []string{here}, "Sec-Fetch-Site: none", ""},
		{200, "GET", "/metrics", []string{here}, "Sec-Fetch-Site: same-origin", ""},
		{200, "GET", "/metrics", []string{here}, "Origin: http://" + here, ""},
		{403, "GET", "/debug/pprof/", []string{here}, "Sec-Fetch-Site: cross-site", ""},
		{403, "GET", "/debug/pprof/", []string{here}, "Sec-Fetch-Site: same-site", ""},
		{403, "GET", "/debug/pprof/", []string{here}, "Origin: null", ""},
		{403, "GET", "/debug/pprof/", []string{here}, "Origin: http://127.0.0.1:8080", ""},
		{404, "GET", "/debug/pprof/cmdline?x", []string{here}, "", ""}, // may contain the password of the database
		{200, "PUT", "/log-level", []string{here}, "", "debug"},
		{200, "PUT", "/log-level", []string{here}, "", "INFO\n"},
		{400, "PUT", "/log-level", []string{here}, "", "error+1000"},
		{400, "PUT", "/log-level", []string{here}, "", ""},
		{400, "PUT", "/log-level", []string{here}, "", strings.Repeat("e", 100)},
	} {
		for _, host := range test.hosts {
			r, w := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)), httptest.NewRecorder()
			r.Host = host
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				r.Header.Set(name, value)
			}
			if Admin(cfg).ServeHTTP(w, r); w.Code != test.want {
				t.Errorf("%+v with Host %q: got %d", test, host, w.Code)
			}
		}
	}
	if level := cfg.Level.Level(); level != slog.LevelInfo { // the last one accepted
		t.Errorf("the level is %v", level)
	}
}

// TestRequestsByStatus: every request with a response is counted by its status, and errors of each route from 0 on.
func TestRequestsByStatus(t *testing.T) {
	t.Parallel()
	m := NewMetrics("a", "b")
	for _, status := range []int{0, 200, 201, 201, 204, 431, 503} {
		m.Count(1, status, time.Millisecond)
	}
	var e Exposition
	m.write(t.Context(), &e)
	for _, want := range []string{`
aiv_requests_total{route="a",status="500"} 0
aiv_requests_total{route="a",status="503"} 0
aiv_requests_total{route="b",status="200"} 1
aiv_requests_total{route="b",status="201"} 2
aiv_requests_total{route="b",status="204"} 1
aiv_requests_total{route="b",status="431"} 1
aiv_requests_total{route="b",status="500"} 0
aiv_requests_total{route="b",status="503"} 1
#`, `aiv_request_seconds_bucket{route="b",le="0.001"} 7`} {
		if !strings.Contains(e.String(), want) {
			t.Errorf("want %s in\n%s", want, e.String())
		}
	}
}

func TestExpositionFormat(t *testing.T) {
	t.Parallel()
	var e Exposition
	e.Family("one", "gauge", "A gauge.")
	e.Sample(1.5)
	e.Sample(2, "a", "\\\"\n", "b", "")
	e.Family("other", "histogram", "A histogram.")
	e.Histogram(Histogram{Bounds: []float64{0.5, 1}, Counts: []uint64{1, 2, 3}, Sum: 9}, "a", "x")
	const want = `# HELP one A gauge.
# TYPE one gauge
one 1.5
one{a="\\\"\n",b=""} 2
# HELP other A histogram.
# TYPE other histogram
other_bucket{a="x",le="0.5"} 1
other_bucket{a="x",le="1"} 3
other_bucket{a="x",le="+Inf"} 6
other_sum{a="x"} 9
other_count{a="x"} 6
`
	storetest.Equal(t, want, e.String())
}
