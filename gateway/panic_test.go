package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway"
	"aiv/store"
)

// TestPanicIsAnInternalError: a panic is an internal error. Nothing is added to a response that has begun.
func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	g := gateway.New(gateway.Config{Log: slog.New(slog.NewJSONHandler(&log, nil)), NewID: store.NewID, Metrics: gateway.NewMetrics()}) // without Limits
	ask := func(path string, w http.ResponseWriter) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", gateway.Base+path, nil)
		r.Header.Set("Authorization", "Bearer aiv_live_00000000000000000000000000000000000000000003GcTia")
		g.ServeHTTP(w, r)
	}
	w := httptest.NewRecorder()
	ask("/v1/me", w)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"code":"internal_error","detail":"The error was logged`) {
		t.Errorf("before the response: got %d, %s", w.Code, w.Body)
	}
	begun := &panickingWriter{ResponseRecorder: httptest.NewRecorder()}
	ask("/docs", begun)
	if begun.writes != 1 {
		t.Errorf("in the response: %d writes, want 1", begun.writes)
	}
	if n := strings.Count(log.String(), "panic: "); n != 2 {
		t.Errorf("%d panics are logged, want 2:\n%s", n, log.String())
	}
}

// panickingWriter is a response whose first write panics.
type panickingWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *panickingWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes == 1 {
		panic("in a write")
	}
	return w.ResponseRecorder.Write(p)
}
