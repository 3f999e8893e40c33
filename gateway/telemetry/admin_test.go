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
	const at = "127.0.0.1:9090"
	here, none := []string{at}, []string{""}
	for _, test := range []struct {
		want                 int
		method, path         string
		hosts, headers, body []string
	}{
		{200, "GET", "/livez", []string{at, "[::1]:9090", "localhost:9090", "LOCALHOST", "Metrics.Internal:9090"}, none, none},
		{421, "GET", "/livez", []string{"evil.example", "localhost.evil.example:9090", "127.0.0.1.evil.example", ""}, none, none},
		{421, "PUT", "/log-level", []string{"evil.example"}, none, []string{"error"}},
		{200, "GET", "/metrics", here, []string{"Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin", "Origin: http://" + at}, none},
		{403, "GET", "/debug/pprof/", here, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: null",
			"Origin: http://127.0.0.1:8080"}, none},
		{404, "GET", "/debug/pprof/cmdline?x", here, none, none}, // may contain the password of the database
		{200, "PUT", "/log-level", here, none, []string{"debug", "warn", "error", "INFO\n"}},
		{400, "PUT", "/log-level", here, none, []string{"error+1000", "", "off", strings.Repeat("e", 100)}},
	} {
		for _, host := range test.hosts {
			for _, header := range test.headers {
				for _, body := range test.body {
					if got := askAdmin(cfg, test.method, test.path, host, header, body).Code; got != test.want {
						t.Errorf("%s %s with Host %q, %q and %q: got %d, want %d", test.method, test.path, host, header, body, got, test.want)
					}
				}
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
	if sample := `aiv_request_seconds_bucket{route="b",le="0.001"} 7`; !strings.Contains(page, sample) {
		t.Errorf("want %q in\n%s", sample, page)
	}
}
