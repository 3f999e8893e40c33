package httpserver

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestLastOnConnection: a connection ends after a chunked request and while the server shuts down.
func TestLastOnConnection(t *testing.T) {
	for _, test := range []struct {
		leaving  bool
		encoding []string
		want     string
	}{{false, nil, ""}, {true, nil, "close"}, {false, []string{"chunked"}, "close"}} {
		var leaving atomic.Bool
		leaving.Store(test.leaving)
		w := httptest.NewRecorder()
		h := lastOnConnection(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), &leaving)
		h.ServeHTTP(w, &http.Request{TransferEncoding: test.encoding})
		if got := w.Header().Get("Connection"); got != test.want {
			t.Errorf("%+v: got Connection: %s", test, got)
		}
	}
}
