package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// newWebhook registers a URL for all types of events.
func newWebhook(t *testing.T, serve *process, key, url string) (id, secret string) {
	t.Helper()
	a := serve.send(t, http.StatusCreated, "POST", "/v1/webhooks", key, "", `{"url":"`+url+`","events":["*"]}`)
	return member(t, a.body, "id"), member(t, a.body, "secret")
}

// TestWebhooksListen: aiv webhooks listen prints a delivery that it has verified, rejects other requests, and ends when
// its terminal is closed.
func TestWebhooksListen(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve := startServe(t, url, "-webhook-allow-private")
	startDispatch(t, url, "-webhook-allow-private")
	id, secret := newWebhook(t, serve, key.Key, "http://127.0.0.1:65535/later")
	file := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	var printed logBuffer
	cmd := exec.Command(binary, "webhooks", "listen", "-addr", "127.0.0.1:0", "-secret-file", file)
	cmd.Stdout = &printed
	listener := launch(t, cmd)
	wait(t, "the log", "http://.*;", listener.log.String)
	address, _, _ := strings.Cut(after(listener.log.String(), "http://"), ";")
	serve.send(t, http.StatusOK, "PATCH", "/v1/webhooks/"+id, key.Key, "", `{"url":"http://`+address+`/hook"}`)
	if w, err := client.Post("http://"+address, "application/json", strings.NewReader(`{"type":"run.completed"}`)); err != nil || w.StatusCode != 400 {
		t.Errorf("a request without a signature: %v, %v", w, err)
	}
	event := member(t, serve.send(t, http.StatusAccepted, "POST", "/v1/webhooks/"+id+"/test", key.Key, "", "{}").body, "id")
	line := `^` + event + ` webhook\.test \{"type":"webhook\.test","timestamp":".*"data":\{"webhook_id":"` + id + `"\}\}\n$`
	wait(t, "the delivery", line, printed.String)
	listener.cmd.Process.Signal(syscall.SIGHUP)
	must(t, listener.wait())
}

// received has the deliveries to a webhook.
type received struct {
	server *httptest.Server
	begun  atomic.Int64 // requests
	mu     sync.Mutex
	ids    map[string]string // the webhook-id of each run's event
}

// newReceived starts a receiver. It fails the test if an event is delivered under two ids.
func newReceived(t *testing.T) *received {
	r := &received{ids: make(map[string]string)}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.begun.Add(1)
		var event struct{ Data struct{ ID string } }
		if err := json.NewDecoder(q.Body).Decode(&event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		run, id := event.Data.ID, q.Header.Get("webhook-id")
		if before, again := r.ids[run]; again && before != id {
			t.Errorf("the event of %s was delivered under the ids %s and %s", run, before, id)
		}
		r.ids[run] = id
	}))
	t.Cleanup(r.server.Close)
	return r
}

// runs returns the runs of which an event was received.
func (r *received) runs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.ids))
}

// awaits waits until the events of so many runs are received.
func (r *received) awaits(t *testing.T, runs int) {
	t.Helper()
	storetest.Eventually(t, "the delivery of each event", func() bool { return len(r.runs()) >= runs })
}
