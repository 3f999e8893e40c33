package delivery

import (
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/store/storetest"
)

// TestEventReachesAnEndpoint: an event reaches an endpoint in the documented form, and the delivery reports it. Each attempt has
// the same id and body, and its own time, which the signature covers.
func TestEventReachesAnEndpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	type received struct {
		header http.Header
		body   []byte
		at     time.Time
	}
	got := make(chan received, 10)
	var status atomic.Int32
	status.Store(500)
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, body, time.Now()}
		w.WriteHeader(int(status.Load()))
	})
	e, secret, err := f.Create(t.Context(), account, r.URL+"/hook", "", []string{events.RunCompleted})
	must(t, err)
	verifier, err := NewReceiver(secret)
	must(t, err)
	id := f.record(t, account, 1)[0]
	f.Exec(t, `UPDATE events SET created_at = now() - interval '1 hour'`)
	event, err := events.Get(t.Context(), f.Pool, account, id)
	must(t, err)
	body := map[string]any{"type": events.RunCompleted,
		"timestamp": event.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000Z"), "data": decode(t, event.Data)}
	names := []string{"Content-Length", "Content-Type", "User-Agent", "Webhook-Id", "Webhook-Signature",
		"Webhook-Timestamp"}
	began := time.Now()
	f.dispatch(t, nil)
	for _, want := range []webhooks.Delivery{
		{Status: "pending", Attempts: 1, LastStatus: new(500), LastError: new(webhooks.ErrorStatus)},
		{Status: "delivered", Attempts: 2, LastStatus: new(200)},
	} {
		request := <-got
		equal(t, body, decode(t, request.body), "body")
		equal(t, names, slices.Sorted(maps.Keys(request.header)), "header fields")
		for name, want := range map[string]string{"webhook-id": id.Text("evt"), "User-Agent": "aiv-webhooks/1",
			"Content-Type": "application/json"} {
			equal(t, want, request.header.Get(name), name)
		}
		timestamp := request.header.Get("webhook-timestamp")
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil || seconds < began.Unix() || seconds > request.at.Unix() {
			t.Errorf("webhook-timestamp %s, want %d to %d", timestamp, began.Unix(), request.at.Unix())
		}
		must(t, verifier.Verify(request.header, request.body, request.at))
		d := f.deliveryWhen(t, account, e.ID, want.Status)
		want.EventID, want.Type, want.CreatedAt = id, events.RunCompleted, d.CreatedAt
		want.NextAttemptAt, want.DeliveredAt = d.NextAttemptAt, d.DeliveredAt
		equal(t, want, d, "delivery")
		if pending := d.Status == "pending"; (d.NextAttemptAt != nil) != pending || (d.DeliveredAt == nil) != pending {
			t.Errorf("delivery: %+v", d)
		}
		storetest.Eventually(t, "the next second", func() bool { return time.Now().Unix() > seconds })
		status.Store(200)
		began = time.Now()
		f.due(t, account)
	}
}

// TestEachResponseHasAnOutcome: what an endpoint does, what the delivery reports, and what becomes of the endpoint.
func TestEachResponseHasAnOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	target := newReceiver(t, nil)
	respond := func(status int, header ...string) string {
		return newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}).URL
	}
	raw := func(response string) string {
		return newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, response)
		}).URL
	}
	f.dispatch(t, func(d *Dispatcher) { d.sender.timeout = 3 * time.Second })
	for _, test := range []struct {
		name, url         string
		status, lastError string
		lastStatus        int
		disabled          string
	}{
		{name: "200", url: respond(200), status: "delivered", lastStatus: 200},
		{name: "299", url: respond(299), status: "delivered", lastStatus: 299},
		{name: "500", url: respond(500), status: "pending", lastError: "status", lastStatus: 500},
		{name: "404", url: respond(404), status: "pending", lastError: "status", lastStatus: 404},
		{name: "redirect", url: respond(307, "Location", target.URL), status: "pending", lastError: "redirect",
			lastStatus: 307},
		{name: "410", url: respond(410), status: "failed", lastError: "status", lastStatus: 410, disabled: webhooks.Gone},
		{name: "TLS", url: secure.URL, status: "pending", lastError: "tls"},
		{name: "closed port", url: closedPort(t), status: "pending", lastError: "connection"},
		{name: "hanging", url: newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL,
			status: "pending", lastError: "timeout"},
		{name: "slow body", url: newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}).URL, status: "delivered", lastStatus: 200},
		{name: "not HTTP", url: raw("SSH-2.0-OpenSSH_9.9\r\n"), status: "pending", lastError: "connection"},
		{name: "a status below 100", url: raw("HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n"), status: "pending",
			lastError: "connection"},
		{name: "a status of 999", url: raw("HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"), status: "pending",
			lastError: "status", lastStatus: 999},
		{name: "switching protocols", url: raw("HTTP/1.1 101 No\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
			status: "pending", lastError: "status", lastStatus: 101},
		{name: "large header", url: respond(200, "X-Large", strings.Repeat("a", 64<<10)), status: "pending",
			lastError: "connection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			account := f.NewAccount(t)
			e := f.endpoint(t, account, test.url)
			f.record(t, account, 1)
			d := f.deliveryWhen(t, account, e.ID, test.status)
			equal(t, 1, d.Attempts, "attempts")
			equal(t, test.lastStatus, valueOf(d.LastStatus), "last status")
			equal(t, test.lastError, valueOf(d.LastError), "last error")
			failing := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE id = $1 AND failing_since IS NOT NULL`, e.ID)
			equal(t, test.lastError != "", failing == 1, "failing_since is set")
			got, err := f.Get(t.Context(), account, e.ID)
			must(t, err)
			equal(t, test.disabled, valueOf(got.DisabledReason), "disabled")
			equal(t, test.disabled != "", got.UpdatedAt.After(e.UpdatedAt), "updated")
		})
	}
	t.Cleanup(func() {
		if target.received() != 0 {
			t.Error("a redirect was followed")
		}
	})
}

// valueOf returns what p points to, or the zero value.
func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// TestRetryAfter: the later of Retry-After, within a day, and the schedule holds.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "3600": time.Hour, "100000000": 24 * time.Hour, strings.Repeat("9", 30): 24 * time.Hour,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat):        time.Hour,
		time.Now().Add(1000 * time.Hour).UTC().Format(http.TimeFormat): 24 * time.Hour,
	} {
		if got := retryAfter(text); got > want || got < want-time.Minute {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	var after atomic.Value
	f, account, _ := newPair(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after.Load().(string))
		w.WriteHeader(503)
	})
	d := f.dispatcher()
	for text, want := range map[string]time.Duration{"1": 4 * time.Second, "3600": time.Hour} {
		after.Store(text)
		began := time.Now()
		f.record(t, account, 1)
		d.deliver(t)
		equal(t, 1, f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE attempts = 1 AND next_attempt_at BETWEEN $1 AND $2`,
			began.Add(want), time.Now().Add(max(want, 6*time.Second))), "deliveries that are attempted again in time after ", text)
		f.Exec(t, `DELETE FROM webhook_deliveries`)
	}
}

func decode(t testing.TB, text []byte) (value map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(text, &value))
	return value
}

// closedPort returns a URL with a port that no server can use until the test ends, because a socket that does not
// listen is bound to it.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err := syscall.Getsockname(fd)
	must(t, err)
	return "http://127.0.0.1:" + strconv.Itoa(address.(*syscall.SockaddrInet4).Port) + "/"
}
