package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store"
)

const smallRun = `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`

// TestSlowBodiesOfOneAccount: slow senders with two keys of one account use up the memory for bodies of that account
// only.
func TestSlowBodiesOfOneAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	send := func(key string, body io.Reader) int {
		r := httptest.NewRequestWithContext(t.Context(), "POST", gateway.Base+"/v1/runs", body)
		r.Header.Set("Authorization", "Bearer "+f.keys[key])
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", store.NewID().Text("key"))
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	if code := send("writer", strings.NewReader(smallRun)); code != http.StatusAccepted {
		t.Fatalf("before: got %d", code)
	}
	// One after the other, until the memory does not suffice for one more.
	release, arrived, codes := make(chan struct{}), make(chan struct{}), make(chan int)
	waiting := 0
	for full := false; !full; {
		body := &slowBody{rest: 1<<20 - len(smallRun), end: smallRun, arrived: arrived, release: release}
		key := []string{"full", "writer"}[waiting%2]
		go func() { codes <- send(key, body) }()
		select {
		case <-arrived:
			if waiting++; waiting > 32 {
				t.Fatal("the memory of one account has no bound")
			}
		case code := <-codes:
			if full = true; code != http.StatusServiceUnavailable {
				t.Errorf("a slow body: got %d", code)
			}
		}
	}
	for _, key := range []string{"full", "writer"} {
		if code := send(key, strings.NewReader(strings.Repeat(" ", 1<<20-len(smallRun))+smallRun)); code != http.StatusServiceUnavailable {
			t.Errorf("another large body of the account, with key %s: got %d, want 503", key, code)
		}
	}
	if code := send("other", strings.NewReader(strings.Repeat(" ", 1<<20-len(smallRun))+smallRun)); code == http.StatusServiceUnavailable {
		t.Errorf("a large body of another account: got %d", code)
	}
	close(release)
	for range waiting {
		if code := <-codes; code != http.StatusAccepted {
			t.Errorf("a slow body that was continued: got %d", code)
		}
	}
}

// TestFullAccount: an account that has as many runs being created and pages being sent as it may have is rejected;
// others are served.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	defer g.Fill(f.accounts["golden"])()
	for key, rejected := range map[string]bool{"full": true, "other": false} {
		for method, body := range map[string]string{"POST": smallRun, "GET": ""} {
			if w := ask(g, f.keys[key], method, "/v1/runs", body); (w.Code == http.StatusServiceUnavailable) != rejected {
				t.Errorf("%s with key %s: got %d", method, key, w.Code)
			}
		}
	}
}

// slowBody is a body of spaces that pauses before its end.
type slowBody struct {
	rest    int
	end     string
	arrived chan<- struct{}
	release <-chan struct{}
	paused  bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.rest > 0 {
		n := min(len(p), b.rest)
		b.rest -= n
		copy(p, strings.Repeat(" ", n))
		return n, nil
	}
	if !b.paused {
		b.paused = true
		b.arrived <- struct{}{}
		<-b.release
	}
	n := copy(p, b.end)
	if b.end = b.end[n:]; b.end == "" {
		return n, io.EOF
	}
	return n, nil
}

// TestSlowReceiversHoldNoReader: clients that do not take their responses do not keep others from the reads of the
// database.
func TestSlowReceiversHoldNoReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reads, err := store.OpenAnother(t.Context(), f.pool, 2, "statement_timeout", 2*time.Second)
	must(t, err)
	defer reads.Close()
	f.reads = reads
	g := f.gateway(io.Discard)
	run := ask(g, f.keys["full"], "POST", "/v1/runs", smallRun)
	id := run.Header().Get("Location")
	id = id[strings.LastIndex(id, "/"):]
	for _, address := range []string{"/v1/runs", "/v1/runs" + id, "/v1/usage", "/v1/runs" + id + "/results", "/v1/webhooks"} {
		begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		const slow = 3
		for range slow {
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), "GET", gateway.Base+address, nil)
				r.Header.Set("Authorization", "Bearer "+f.keys["full"])
				g.ServeHTTP(&slowWriter{httptest.NewRecorder(), begun, release}, r)
				ended <- struct{}{}
			}()
		}
		for range slow {
			<-begun
		}
		if code := ask(g, f.keys["other"], "GET", "/v1/runs", "").Code; code != http.StatusOK {
			t.Errorf("%s: got %d while %d responses are not taken", address, code, slow)
		}
		close(release)
		for range slow {
			<-ended
		}
	}
}

// slowWriter is a response whose client reads only when it is released.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun   chan<- struct{}
	release <-chan struct{}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.begun <- struct{}{}
	<-w.release
	return w.ResponseRecorder.Write(p)
}
