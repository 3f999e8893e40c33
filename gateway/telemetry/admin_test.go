package telemetry_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/telemetry"
)

// TestAdminIsLocal: no web page can use the admin listener through an operator's browser.
func TestAdminIsLocal(t *testing.T) {
	t.Parallel()
	level := new(slog.LevelVar)
	h := telemetry.Admin(telemetry.AdminConfig{Metrics: telemetry.NewMetrics(), Level: level, Hosts: []string{"metrics.internal"},
		Ready: func(context.Context) error { return nil }})
	ask := func(method, path, host, header, body string) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = host
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, test := range []struct {
		host, header string
		want         int
	}{
		{"127.0.0.1:9090", "", 200}, {"[::1]:9090", "", 200}, {"10.1.2.3", "", 200}, {"localhost:9090", "", 200}, {"LOCALHOST", "", 200},
		{"metrics.internal:9090", "", 200}, {"Metrics.Internal", "", 200},
		{"evil.example", "", 421}, {"localhost.evil.example:9090", "", 421}, {"127.0.0.1.evil.example", "", 421}, {"", "", 421},
		{"127.0.0.1:9090", "Sec-Fetch-Site: none", 200}, {"127.0.0.1:9090", "Sec-Fetch-Site: same-origin", 200},
		{"127.0.0.1:9090", "Sec-Fetch-Site: cross-site", 403}, {"127.0.0.1:9090", "Sec-Fetch-Site: same-site", 403},
		{"127.0.0.1:9090", "Origin: http://127.0.0.1:9090", 200}, {"127.0.0.1:9090", "Origin: http://127.0.0.1:8080", 403},
		{"127.0.0.1:9090", "Origin: http://evil.example", 403}, {"127.0.0.1:9090", "Origin: null", 403},
	} {
		for _, path := range []string{"/livez", "/metrics", "/log-level", "/debug/pprof/"} {
			if got := ask("GET", path, test.host, test.header, ""); got != test.want {
				t.Errorf("GET %s with Host %q and %q: got %d, want %d", path, test.host, test.header, got, test.want)
			}
		}
	}
	if got := ask("PUT", "/log-level", "evil.example", "", "error"); got != 421 || level.Level() != slog.LevelInfo {
		t.Errorf("another host sets the level: %d, %v", got, level.Level())
	}
	for text, want := range map[string]int{"debug": 200, "INFO\n": 200, "warn": 200, "error": 200,
		"error+1000": 400, "info+2": 400, "": 400, "off": 400, strings.Repeat("e", 100): 400} {
		if got := ask("PUT", "/log-level", "127.0.0.1", "", text); got != want {
			t.Errorf("the level %q: got %d, want %d", text, got, want)
		}
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/cmdline?x"} {
		if got := ask("GET", path, "127.0.0.1", "", ""); got != 404 {
			t.Errorf("GET %s: got %d, want 404", path, got)
		}
	}
}

// TestRequestsByStatus: every request with a response is counted by its status, and errors of each route from 0 on.
func TestRequestsByStatus(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics("a", "b")
	for _, status := range []int{0, 200, 201, 201, 204, 431, 503} {
		m.Count(1, status, time.Millisecond)
	}
	h := telemetry.Admin(telemetry.AdminConfig{Metrics: m, Ready: func(context.Context) error { return nil }})
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got []string
	for line := range strings.Lines(w.Body.String()) {
		if rest, ok := strings.CutPrefix(line, "aiv_requests_total"); ok {
			got = append(got, strings.TrimSpace(rest))
		}
	}
	want := []string{`{route="a",status="500"} 0`, `{route="b",status="200"} 1`, `{route="b",status="201"} 2`, `{route="b",status="204"} 1`, `{route="b",status="431"} 1`,
		`{route="b",status="500"} 0`, `{route="b",status="503"} 1`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, sample := range []string{`bucket{route="b",le="0.0005"} 0`, `bucket{route="b",le="0.001"} 7`, `sum{route="b"} 0.007`, `count{route="b"} 7`} {
		if line := "\naiv_request_seconds_" + sample + "\n"; !strings.Contains(w.Body.String(), line) {
			t.Errorf("want %q in\n%s", line, w.Body)
		}
	}
}
