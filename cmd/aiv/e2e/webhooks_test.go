package e2e

import (
	"encoding/json"
	"io"
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
	"testing"

	"aiv/store/storetest"
)

// newWebhook registers a URL for all types of events.
func newWebhook(t *testing.T, serve *process, key, url string) (id, secret string) {
	t.Helper()
	a := serve.send(t, http.StatusCreated, "POST", "/v1/webhooks", key, "", `{"url":"`+url+`","events":["*"]}`)
	return member(t, a.body, "id"), member(t, a.body, "secret")
}

// TestWebhooksListen: aiv webhooks listen prints a delivery that it has verified, and rejects other requests. An
// operator lists the webhook and disables it. What a receiver sends after its response is not in the log of aiv dispatch.
func TestWebhooksListen(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve := startServe(t, url, "-webhook-allow-private")
	dispatch := startDispatch(t, url, "-webhook-allow-private")
	id, secret := newWebhook(t, serve, key.Key, "http://127.0.0.1:65535/later")
	test := func(id string) (event string) {
		t.Helper()
		return member(t, serve.send(t, http.StatusAccepted, "POST", "/v1/webhooks/"+id+"/test", key.Key, "", "{}").body, "id")
	}

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
	line := `^` + test(id) + ` webhook\.test \{"type":"webhook\.test","timestamp":".*"data":\{"webhook_id":"` + id + `"\}\}\n$`
	wait(t, "the delivery", line, printed.String)

	type webhook struct {
		ID             string
		DisabledReason string `json:"disabled_reason"`
	}
	cli[webhook](t, url, "webhooks", "disable", id)
	serve.send(t, http.StatusConflict, "PATCH", "/v1/webhooks/"+id, key.Key, "", `{"enabled":true}`)
	if all := cli[[]webhook](t, url, "webhooks", "list"); len(all) != 1 || all[0] != (webhook{id, "operator"}) {
		t.Errorf("list: %+v", all)
	}
	if w := cli[webhook](t, url, "webhooks", "enable", id); w.DisabledReason != "" {
		t.Errorf("enabled: %+v", w)
	}

	ended := make(chan error, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nOUT OF TURN")
			io.Copy(io.Discard, conn) // until the client, which has read that, closes the connection
		}
		ended <- err
	}))
	t.Cleanup(receiver.Close)
	second, _ := newWebhook(t, serve, key.Key, receiver.URL)
	test(second)
	must(t, <-ended)
	stops(t, dispatch)
	for line := range strings.Lines(dispatch.log.String()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, "OUT OF TURN") {
			t.Errorf("the log has the line %q", line)
		}
	}
}

// received has the deliveries to a webhook.
type received struct {
	server *httptest.Server
	begun  atomic.Int64 // requests
	mu     sync.Mutex
	ids    map[string]map[string]bool // the webhook-ids of each run
}

func newReceived(t *testing.T) *received {
	r := &received{ids: make(map[string]map[string]bool)}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.begun.Add(1)
		var event struct{ Data struct{ ID string } }
		if err := json.NewDecoder(q.Body).Decode(&event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ids[event.Data.ID] == nil {
			r.ids[event.Data.ID] = make(map[string]bool)
		}
		r.ids[event.Data.ID][q.Header.Get("webhook-id")] = true
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

// underOneID fails the test unless the events of so many runs are received, each under one id.
func (r *received) underOneID(t *testing.T, runs int) {
	t.Helper()
	storetest.Eventually(t, "the delivery of each event", func() bool { return len(r.runs()) >= runs })
	r.mu.Lock()
	defer r.mu.Unlock()
	for run, ids := range r.ids {
		if len(ids) != 1 {
			t.Errorf("the event of %s was delivered under the ids %v", run, ids)
		}
	}
}
