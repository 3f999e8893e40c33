package httpserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
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

// TestBeginsLarger: only the full buffer of a response whose announced body goes on is kept.
func TestBeginsLarger(t *testing.T) {
	full := func(text string) string { return text + strings.Repeat("x", max(0, bufferSize-len(text))) }
	const header = "HTTP/1.1 200 OK\r\nContent-Length: "
	for text, want := range map[string]bool{
		full(header + "5000\r\n\r\n"):                            true,
		full(header + "5000\r\n\r\n")[:bufferSize-1]:             false, // not full
		full(" TTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"):  false, // not the beginning of a response
		full(header + "4055\r\n\r\n"):                            false, // the whole body
		full(header + "5000\r\nX: "):                             false, // the header goes on
		full("HTTP/1.1 200 OK\r\n\r\n"):                          false, // no length
		full(header + "5000\r\nX: ")[:bufferSize-4] + "\r\n\r\n": false, // no body yet: HEAD
	} {
		if got := beginsLarger([]byte(text)); got != want {
			t.Errorf("%q…: got %v", text[:60], got)
		}
	}
}
