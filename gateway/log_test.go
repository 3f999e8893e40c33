package gateway_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway"
)

// TestClientMistakesAreNoErrors: a mistake of a client is not logged as an error of the service.
func TestClientMistakesAreNoErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var log bytes.Buffer
	g := f.gateway(&log)
	post := func(body string) int {
		r := httptest.NewRequest("POST", gateway.Base+"/v1/runs", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+f.keys["full"])
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "once")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	body := `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`
	if status := post(body); status != 202 {
		t.Fatalf("creating a run: status %d: %s", status, &log)
	}
	if status := post(strings.Replace(body, `"repetitions":1`, `"repetitions":2`, 1)); status != 409 {
		t.Errorf("reusing the key: status %d", status)
	}
	if strings.Contains(log.String(), `"level":"ERROR"`) {
		t.Errorf("an error is logged:\n%s", &log)
	}
}
