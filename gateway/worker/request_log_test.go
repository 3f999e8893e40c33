package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway/worker"
	"aiv/store/storetest"
)

// TestRequestLog: each request writes one line, which contains neither the token nor the URL.
func TestRequestLog(t *testing.T) {
	s := siteOf(t, newDatabase(t))
	var log bytes.Buffer
	h := s.handler(slog.New(slog.NewJSONHandler(&log, nil)))
	const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	claim, id := aClaim(1, 0), s.worker.ID.Text("wrk")
	for _, test := range []struct {
		name, path, token, body string
		want                    string // level, route, status, code and worker
	}{
		{"a claim", "claim", s.token, claim, "INFO POST /worker/v1/claim 200 <nil> " + id},
		{"a malformed settlement", "settle", s.token, `{`, "INFO POST /worker/v1/settle 400 invalid_json " + id},
		{"a query", "claim?token=" + s.token, s.token, claim, "INFO POST /worker/v1/claim 400 invalid_parameter " + id},
		{"no such route", s.token, s.token, "", "INFO none 404 route_not_found " + id},
		{"no worker", "claim", s.token + "0", claim, "INFO none 401 invalid_api_key <nil>"},
		{"an internal error", "claim", s.token, claim, "ERROR POST /worker/v1/claim 500 internal_error " + id},
	} {
		if test.name == "an internal error" {
			storetest.Exec(t, s.pool, `ALTER TABLE job_turns RENAME TO gone`)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", worker.Base+"/"+test.path, strings.NewReader(test.body))
		r.Header.Set("Authorization", "Bearer "+test.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", traceparent)
		response := httptest.NewRecorder()
		log.Reset()
		h.ServeHTTP(response, r)
		line := log.String()
		var got map[string]any
		must(t, json.Unmarshal([]byte(line), &got)) // one line
		if fmt.Sprint(got["level"], " ", got["route"], " ", got["status"], " ", got["code"], " ", got["worker"]) != test.want ||
			got["request_id"] != response.Header().Get("X-Request-Id") || got["trace_id"] != traceparent[3:35] || strings.Contains(line, s.token) {
			t.Errorf("%s: %s, want %s", test.name, line, test.want)
		}
	}
}
