package telemetry

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// askAdmin sends a request to the admin listener; header is "NAME: VALUE" or empty.
func askAdmin(cfg AdminConfig, method, path, host, header, body string) *httptest.ResponseRecorder {
	cfg.Ready = func(context.Context) error { return nil }
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = host
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	Admin(cfg).ServeHTTP(w, r)
	return w
}

// TestAdminIsLocal: no web page can use the admin listener through an operator's browser.
func TestAdminIsLocal(t *testing.T) {
	t.Parallel()
	cfg := AdminConfig{Metrics: NewMetrics(), Level: new(slog.LevelVar), Hosts: []string{"metrics.internal"}}
	answers := func(want int, method, path, host, header, body string) {
		t.Helper()
		if got := askAdmin(cfg, method, path, host, header, body).Code; got != want {
			t.Errorf("%s %s with Host %q, %q and %q: got %d, want %d", method, path, host, header, body, got, want)
		}
	}
	const at = "127.0.0.1:9090"
	for _, path := range []string{"/livez", "/metrics", "/log-level", "/debug/pprof/"} {
		for _, host := range []string{at, "[::1]:9090", "10.1.2.3", "localhost:9090", "LOCALHOST", "metrics.internal:9090",
			"Metrics.Internal"} {
			answers(200, "GET", path, host, "", "")
		}
		for _, host := range []string{"evil.example", "localhost.evil.example:9090", "127.0.0.1.evil.example", ""} {
			answers(421, "GET", path, host, "", "")
		}
		for _, header := range []string{"Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin", "Origin: http://" + at} {
			answers(200, "GET", path, at, header, "")
		}
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: null",
			"Origin: http://127.0.0.1:8080", "Origin: http://evil.example"} {
			answers(403, "GET", path, at, header, "")
		}
	}
	answers(404, "GET", "/debug/pprof/cmdline", at, "", "")
	answers(404, "GET", "/debug/pprof/cmdline?x", at, "", "")

	answers(421, "PUT", "/log-level", "evil.example", "", "error")
	if level := cfg.Level.Level(); level != slog.LevelInfo {
		t.Errorf("another host sets the level %v", level)
	}
	for _, level := range []string{"debug", "INFO\n", "warn", "error"} {
		answers(200, "PUT", "/log-level", at, "", level)
	}
	for _, level := range []string{"error+1000", "info+2", "", "off", strings.Repeat("e", 100)} {
		answers(400, "PUT", "/log-level", at, "", level)
	}
}

// TestRequestsByStatus: every request with a response is counted by its status, and errors of each route from 0 on.
func TestRequestsByStatus(t *testing.T) {
	t.Parallel()
	m := NewMetrics("a", "b")
	for _, status := range []int{0, 200, 201, 201, 204, 431, 503} {
		m.Count(1, status, time.Millisecond)
	}
	page := askAdmin(AdminConfig{Metrics: m}, "GET", "/metrics", "localhost", "", "").Body.String()
	var got []string
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, "aiv_requests_total"); ok {
			got = append(got, strings.TrimSpace(rest))
		}
	}
	want := []string{`{route="a",status="500"} 0`, `{route="b",status="200"} 1`, `{route="b",status="201"} 2`,
		`{route="b",status="204"} 1`, `{route="b",status="431"} 1`, `{route="b",status="500"} 0`,
		`{route="b",status="503"} 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, sample := range []string{`bucket{route="b",le="0.0005"} 0`, `bucket{route="b",le="0.001"} 7`,
		`sum{route="b"} 0.007`, `count{route="b"} 7`} {
		if !strings.Contains(page, "\naiv_request_seconds_"+sample+"\n") {
			t.Errorf("want %q in\n%s", sample, page)
		}
	}
}
