package worker_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/gateway/telemetry"
	"aiv/gateway/worker"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// writes has what was written.
type writes chan string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// TestRequestLog: each request writes one line, which contains neither the token nor the URL.
func TestRequestLog(t *testing.T) {
	s := siteOf(t, newDatabase(t))
	out := make(writes, 10)
	w := telemetry.NewLogWriter(out)
	h := s.handler(slog.New(slog.NewJSONHandler(w, nil)), w)
	gone, leave := context.WithCancel(t.Context())
	leave()
	const (
		trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		lease         = `{"lease_seconds":60,"jobs":[{"id":"job_0","attempt":1}]}`
		// The route of a request that is refused earlier is none.
		claimed, renewed, settled, none = "POST /worker/v1/claim", "POST /worker/v1/heartbeat", "POST /worker/v1/settle", "none"
	)
	claim := aClaim(1, 0)
	for _, test := range []struct {
		name, method, path, token, body, route string
		status, roundTrips                     int // 0: the client has left
		code                                   string
	}{
		{"a claim", "POST", "claim", s.token, claim, claimed, 200, 2, ""},
		{"a heartbeat", "POST", "heartbeat", s.token, lease, renewed, 200, 2, ""},
		{"a malformed settlement", "POST", "settle", s.token, `{`, settled, 400, 1, "invalid_json"},
		{"a query", "POST", "claim?token=" + s.token, s.token, claim, claimed, 400, 1, "invalid_parameter"},
		{"no such route", "POST", s.token, s.token, "", none, 404, 1, "route_not_found"},
		{"no such method", "GET", "claim", s.token, "", none, 405, 1, "method_not_allowed"},
		{"no worker", "POST", "claim", s.token + "0", claim, none, 401, 0, "invalid_api_key"},
		{"an internal error", "POST", "claim", s.token, claim, claimed, 500, 2, "internal_error"},
		// The last one: its claim may go on, and the next would get a new connection, which prepares its statements.
		{"a worker that has left", "POST", "claim", s.token, aClaim(1, 30), claimed, 0, 2, ""},
	} {
		ctx := t.Context()
		switch test.status {
		case 0:
			ctx = gone
		case 500:
			storetest.Exec(t, s.pool, `ALTER TABLE job_turns RENAME TO gone`)
		}
		r := httptest.NewRequestWithContext(ctx, test.method, worker.Base+"/"+test.path, strings.NewReader(test.body))
		r.Header.Set("Authorization", "Bearer "+test.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
		response := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler { // which ends the connection of the client that has left
					panic(p)
				}
			}()
			h.ServeHTTP(response, r)
		}()
		text := ""
		select {
		case text = <-out:
		case <-time.After(storetest.Patience):
			t.Fatalf("%s: no line", test.name)
		}
		want := map[string]any{
			"level": "INFO", "msg": "request", "method": test.method, "route": test.route, "status": float64(test.status),
			"round_trips": float64(test.roundTrips), "remote": "192.0.2.1:1234", "worker": s.worker.ID.Text("wrk"),
			"code": test.code, "request_id": response.Header().Get("X-Request-Id"), "trace_id": trace, "parent_id": parent,
		}
		if test.code == "" {
			delete(want, "code")
		}
		switch test.status {
		case 401:
			delete(want, "worker")
		case 500:
			want["level"], want["error"] = "ERROR", `ERROR: relation "job_turns" does not exist (SQLSTATE 42P01)`
		}
		var got map[string]any
		must(t, json.Unmarshal([]byte(text), &got))
		if us, ok := got["us"].(float64); !ok || us <= 0 || got["time"] == nil || strings.Contains(text, s.token) {
			t.Errorf("%s: %s", test.name, text)
		}
		delete(got, "us")
		delete(got, "time")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
