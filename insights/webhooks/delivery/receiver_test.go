package delivery

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"aiv/store"
)

// A receiver collects the events that it is sent.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events map[string]int // by webhook-id
	most   int            // requests at a time
	now    int
}

// newReceiver returns a receiver that responds by respond, or with 204.
func newReceiver(t testing.TB, respond http.HandlerFunc) *receiver {
	r := &receiver{events: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if respond != nil && request.ContentLength < 1<<10 { // so that the server notices when the client goes
			body, _ := io.ReadAll(request.Body)
			request.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.mu.Lock()
		r.events[request.Header.Get("webhook-id")]++
		r.now++
		r.most = max(r.most, r.now)
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			r.now--
			r.mu.Unlock()
		}()
		if respond == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		respond(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

// newHangingReceiver returns a receiver that responds when the channel is closed.
func newHangingReceiver(t testing.TB) (r *receiver, respond chan struct{}) {
	respond = make(chan struct{})
	return newReceiver(t, func(http.ResponseWriter, *http.Request) { <-respond }), respond
}

// times returns how often an event was received.
func (r *receiver) times(event store.ID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[event.Text("evt")]
}

func (r *receiver) received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}
