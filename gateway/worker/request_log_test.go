package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/gateway/telemetry"
	"aiv/gateway/worker"
	"aiv/store"

	"github.com/google/go-cmp/cmp"
)

// TestRequestLog: each request writes one line, which contains neither the token nor the URL.
func TestRequestLog(t *testing.T) {
	s := newSite(t)
	workers, err := s.admin.Workers(t.Context())
	must(t, err)
	id := workers[0].ID.Text("wrk")
	var out bytes.Buffer
	w := telemetry.NewLogWriter(&out)
	h := worker.New(worker.Config{Jobs: s.jobs, Workers: auth.NewWorkerLookup(s.pool, 20*time.Second, 1000), NewID: store.NewID, Timeout: 20 * time.Second,
		Log: slog.New(slog.NewJSONHandler(w, nil)), Requests: telemetry.NewRequestLog(w), Metrics: worker.NewMetrics(),
	})
	claim := func(wait string) string {
		return `{"limit":1,"lease_seconds":60,"providers":null,"wait_seconds":` + wait + `}`
	}
	disconnected, disconnect := context.WithCancel(t.Context())
	disconnect()
	line := func(level, method, route string, status, roundTrips int, more ...string) map[string]any {
		m := map[string]any{"level": level, "msg": "request", "method": method, "route": route, "status": float64(status), "round_trips": float64(roundTrips),
			"remote": "192.0.2.1:1234"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, test := range []struct {
		name                      string
		before                    func()
		ctx                       context.Context
		method, path, token, body string
		want                      map[string]any
	}{
		{"a claim", nil, t.Context(), "POST", "claim", s.token, claim("0"), line("INFO", "POST", "POST /worker/v1/claim", 200, 2, "worker", id)},
		{"a heartbeat", nil, t.Context(), "POST", "heartbeat", s.token, `{"lease_seconds":60,"jobs":[{"id":"job_0","attempt":1}]}`,
			line("INFO", "POST", "POST /worker/v1/heartbeat", 200, 2, "worker", id)},
		{"a malformed settlement", nil, t.Context(), "POST", "settle", s.token, `{`,
			line("INFO", "POST", "POST /worker/v1/settle", 400, 1, "worker", id, "code", "invalid_json")},
		{"a query", nil, t.Context(), "POST", "claim?token=" + s.token, s.token, claim("0"),
			line("INFO", "POST", "POST /worker/v1/claim", 400, 1, "worker", id, "code", "invalid_parameter")},
		{"no such route", nil, t.Context(), "POST", s.token, s.token, "", line("INFO", "POST", "none", 404, 1, "worker", id, "code", "route_not_found")},
		{"no such method", nil, t.Context(), "GET", "claim", s.token, "", line("INFO", "GET", "none", 405, 1, "worker", id, "code", "method_not_allowed")},
		{"no worker", nil, t.Context(), "POST", "claim", s.token + "0", claim("0"), line("INFO", "POST", "none", 401, 0, "code", "invalid_api_key")},
		{"a worker that has left", nil, disconnected, "POST", "claim", s.token, claim("30"),
			line("INFO", "POST", "POST /worker/v1/claim", 0, 2, "worker", id)},
		{"an internal error", func() { s.exec(t, `ALTER TABLE job_turns RENAME TO gone`) }, t.Context(), "POST", "claim", s.token, claim("0"),
			line("ERROR", "POST", "POST /worker/v1/claim", 500, 2, "worker", id, "code", "internal_error", "error", `ERROR: relation "job_turns" does not exist (SQLSTATE 42P01)`)},
	} {
		if test.before != nil {
			test.before()
		}
		r := httptest.NewRequestWithContext(test.ctx, test.method, worker.Base+"/"+test.path, strings.NewReader(test.body))
		r.Header.Set("Authorization", "Bearer "+test.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
		response := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			h.ServeHTTP(response, r)
		}()
		w.Close()
		text := out.String()
		out.Reset()
		var got map[string]any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v: %s", test.name, err, text)
			continue
		}
		if us, ok := got["us"].(float64); !ok || us <= 0 || got["time"] == nil || strings.Contains(text, s.token) {
			t.Errorf("%s: %s", test.name, text)
		}
		delete(got, "us")
		delete(got, "time")
		test.want["request_id"], test.want["trace_id"], test.want["parent_id"] = response.Header().Get("X-Request-Id"), trace, parent
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
