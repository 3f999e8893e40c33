package delivery

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/insights/webhooks"
	"aiv/store/storetest"
)

// localSender returns a sender that may connect to loopback.
func localSender() *sender {
	s := newSender(&restrictedDialer{resolver: net.DefaultResolver, timeout: waitTimeout, allowPrivate: true}, 8)
	s.wait()
	return s
}

// wait makes the sender wait for as long as tests do.
func (s *sender) wait() {
	s.timeout, s.drain, s.transport.IdleConnTimeout = waitTimeout, waitTimeout, waitTimeout
}

// waitTimeout bounds the time that a test waits for a condition.
const waitTimeout = storetest.Patience

// serve returns the URL of a server with a handler.
func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// TestEachResponseHasAResult: what an endpoint does, and the result of the attempt.
func TestEachResponseHasAResult(t *testing.T) {
	t.Parallel()
	raw := func(response string) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, response)
			conn.SetReadDeadline(time.Now().Add(waitTimeout))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.40q: the connection stays open", response)
			}
		})
	}
	respond := func(status string, headers ...string) string {
		return raw("HTTP/1.1 " + status + "\r\n" + strings.Join(append(headers, "Content-Length: 0"), "\r\n") + "\r\n\r\n")
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	slowBody := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		hang(w, r)
	}
	secure := httptest.NewUnstartedServer(nil) // no client trusts its certificate
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	secure.StartTLS()
	defer secure.Close()
	target := newReceiver(t, 204)
	for _, test := range []struct {
		name, url string
		want      result
	}{
		{"success", respond("200 OK"), result{status: 200}},
		{"failure", respond("404 No"), result{status: 404, err: webhooks.ErrorStatus}},
		{"Retry-After", respond("503 No", "Retry-After: 3600"), result{503, webhooks.ErrorStatus, time.Hour}},
		{"redirect", respond("307 No", "Location: "+target.URL), result{status: 307, err: webhooks.ErrorRedirect}},
		{"below 100", respond("099 No"), result{err: webhooks.ErrorConnection}},
		{"999", respond("999 No"), result{status: 999, err: webhooks.ErrorStatus}},
		{"switching protocols", raw("HTTP/1.1 101 No\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
			result{status: 101, err: webhooks.ErrorStatus}},
		{"large header", respond("200 OK", "X: "+strings.Repeat("a", 64<<10)), result{err: webhooks.ErrorConnection}},
		{"not HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n"), result{err: webhooks.ErrorConnection}},
		{"TLS", secure.URL, result{err: webhooks.ErrorTLS}},
		{"closed port", closedPort(t), result{err: webhooks.ErrorConnection}},
		{"hanging", serve(t, hang), result{err: webhooks.ErrorTimeout}},
		{"slow body", serve(t, slowBody), result{status: 200}},
	} {
		s := localSender()
		switch test.name {
		case "hanging":
			s.timeout = 50 * time.Millisecond
		case "slow body":
			s.drain = drainTimeout
		}
		if got := s.send(t.Context(), test.url, http.Header{}, nil); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
		s.transport.CloseIdleConnections()
	}
	equal(t, 0, target.received(), "requests after a redirect")
	conn, err := tls.Dial("tcp", secure.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	must(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // after the handshake of TLS 1.3
	equal(t, webhooks.ErrorTLS, classify(t.Context(), err), "a client without a certificate")
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
	return "http://127.0.0.1:" + strconv.Itoa(address.(*syscall.SockaddrInet4).Port)
}

// TestLargeBody: of a response body only the beginning is read. After a larger one, the connection is not used again.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{maxDrain: 1, maxDrain + 1: 2} {
		connections := make(map[string]bool) // by the client's address; one request comes after the other
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			connections[r.RemoteAddr] = true
			w.Header().Set("Content-Length", strconv.Itoa(size))
			w.Write(make([]byte, size))
		})
		s := localSender()
		for range 2 {
			equal(t, "", s.send(t.Context(), url, http.Header{}, nil).err)
		}
		equal(t, want, len(connections), "connections of two responses with ", size, " bytes")
	}
}

// TestRetriesFollowTheSchedule: retries follow the schedule until the last, which fails the delivery. When deliveries
// failed together, their retries are spread over 20 % before and after the time of the schedule. A later Retry-After
// holds instead. A 410 fails the delivery.
func TestRetriesFollowTheSchedule(t *testing.T) {
	t.Parallel()
	wants := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	outcome := func(attempts int, after time.Duration) outcome {
		r := timedOut
		r.retryAfter = after
		return newOutcome(&delivery{attempts: int32(attempts)}, attemptedURL, r)
	}
	for i, want := range wants {
		var delays []time.Duration
		for range 100 {
			o := outcome(i, want/2)
			equal(t, "pending", o.status, "the delivery after attempt ", i+1)
			delays = append(delays, o.delay)
		}
		least, most := slices.Min(delays), slices.Max(delays)
		if least < want*8/10 || most > want*12/10 || most-least < want/5 {
			t.Errorf("delays after attempt %d are from %v to %v, want %v ± 20 %%", i+1, least, most, want)
		}
		equal(t, 2*want, outcome(i, 2*want).delay, "delay with a later Retry-After")
	}
	equal(t, "failed", outcome(len(wants), 0).status, "the delivery after the last attempt")
	gone := newOutcome(new(delivery), attemptedURL, result{status: 410, err: webhooks.ErrorStatus})
	equal(t, "failed", gone.status, "the delivery after a 410")
}

func TestRetryAfterHeader(t *testing.T) {
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
}
