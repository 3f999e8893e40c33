package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
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
// operator lists the webhook and disables it. The log of aiv dispatch has nothing of what receivers send.
func TestWebhooksListen(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve := startServe(t, url, "-webhook-allow-private")
	dispatch := startDispatch(t, url, "-webhook-allow-private")
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

	type webhook struct {
		ID             string
		DisabledReason string `json:"disabled_reason"`
	}
	if w := cli[webhook](t, url, "webhooks", "disable", id); w.DisabledReason != "operator" {
		t.Errorf("disabled: %+v", w)
	}
	if _, stdout, _ := aiv(t.Context(), "webhooks", "list", "-database-url", url); !strings.HasSuffix(stdout, "\tdisabled: operator\tno\n") {
		t.Errorf("the list of webhooks is\n%s", stdout)
	}
	if all := cli[[]webhook](t, url, "webhooks", "list"); len(all) != 1 || all[0].ID != id || all[0].DisabledReason != "operator" {
		t.Errorf("list: %+v", all)
	}
	serve.send(t, http.StatusConflict, "PATCH", "/v1/webhooks/"+id, key.Key, "", `{"enabled":true}`)
	if w := cli[webhook](t, url, "webhooks", "enable", id); w.DisabledReason != "" {
		t.Errorf("enabled: %+v", w)
	}
	sendsOutOfTurn(t, serve, dispatch, key.Key)
}

// sendsOutOfTurn: what a receiver sends after its response is not in the log of dispatch, which has JSON lines only.
func sendsOutOfTurn(t *testing.T, serve, dispatch *process, key string) {
	t.Helper()
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
	id, _ := newWebhook(t, serve, key, receiver.URL)
	serve.send(t, http.StatusAccepted, "POST", "/v1/webhooks/"+id+"/test", key, "", "{}")
	must(t, <-ended)
	stops(t, dispatch)
	for line := range strings.Lines(dispatch.log.String()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, "OUT OF TURN") {
			t.Errorf("the log has the line %q", line)
		}
	}
}

// TestFaultWebhooks: aiv dispatch and PostgreSQL are killed again and again while runs become final. Each run has one
// event, and each webhook gets each event at least once, under one id.
func TestFaultWebhooks(t *testing.T) {
	t.Parallel()
	runs, kills, crashes := byForm(10, 2000), byForm(2, 50), byForm(1, 10)
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL(), 1_000_000)
	serve := startServe(t, c.URL(), "-webhook-allow-private")
	webhooks := []*received{newReceived(t), newReceived(t)}
	for _, r := range webhooks {
		newWebhook(t, serve, key.Key, r.server.URL+"/hook")
	}
	f := newFleetOf(t, c.URL(), []string{key.Key}, runs, 3, 1, "-webhook-allow-private")
	f.begin(4)
	f.killDispatcher(c, kills, crashes)
	pool := open(t, c.URL())
	f.end(pool)
	f.check("webhooks", pool)
	if !storetest.Long() { // in the long form, these leases end by themselves
		storetest.Exec(t, pool, deliverNow)
	}
	if n := number(t, pool, `SELECT count(*) FROM events`); n != runs {
		t.Errorf("%d events of %d runs", n, runs)
	}
	for _, r := range webhooks {
		storetest.Eventually(t, "the delivery of each event", func() bool { return len(r.runs()) >= runs })
		r.underOneID(t)
	}
}

// deliverNow ends what killed processes had taken to deliver, and would keep for 45 s.
const deliverNow = `UPDATE webhook_queues SET wake_at = now(), version = version + 1`

// received counts the deliveries to a webhook.
type received struct {
	server *httptest.Server
	begun  atomic.Int64 // requests
	mu     sync.Mutex
	counts map[string]map[string]int // by run and by webhook-id
}

func newReceived(t *testing.T) *received {
	r := &received{counts: make(map[string]map[string]int)}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.begun.Add(1)
		var event struct{ Data struct{ ID string } }
		if err := json.NewDecoder(q.Body).Decode(&event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.counts[event.Data.ID] == nil {
			r.counts[event.Data.ID] = make(map[string]int)
		}
		r.counts[event.Data.ID][q.Header.Get("webhook-id")]++
	}))
	t.Cleanup(r.server.Close)
	return r
}

// underOneID fails the test if the event of a run was received under several ids. It returns how many deliveries were
// repeated.
func (r *received) underOneID(t *testing.T) (again int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for run, ids := range r.counts {
		if len(ids) != 1 {
			t.Errorf("the event of %s was delivered under the ids %v", run, ids)
		}
		for _, times := range ids {
			again += times - 1
		}
	}
	return again
}

// runs returns the runs of which an event was received.
func (r *received) runs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.counts))
}

// freeAddress returns a loopback address that nothing listens on. Nobody else takes its port meanwhile, because other
// programs use 127.0.0.1.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}
