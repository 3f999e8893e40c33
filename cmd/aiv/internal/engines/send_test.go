package engines

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
)

// serverOf returns the address of a server, and how many requests it got.
func serverOf(t *testing.T, h http.HandlerFunc) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		requests.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// hijack closes the connection after it has sent some bytes. A close with unread bytes or no linger resets it.
func hijack(sent string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(c, sent)
		if reset {
			c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
}

func compressed(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for _, p := range parts {
		io.WriteString(z, p)
	}
	z.Close()
}

// TestEachFormOfBodyHasAnOutcome: each form of a body has its outcome. A body is read up to a bound, whether it is compressed or not.
func TestEachFormOfBodyHasAnOutcome(t *testing.T) {
	t.Parallel()
	valid := ofChat(`{"message":{"content":"A"}}`)
	const unreachable, invalid, completed = `"code":"provider_unreachable"`, `"code":"invalid_response"`, `"outcome":"completed"`
	send := func(body string) http.HandlerFunc { return enginestest.Answer(200, body) }
	for _, test := range []struct {
		name     string
		handler  http.HandlerFunc
		want     string
		requests int
	}{
		{"chunked and slow", func(w http.ResponseWriter, _ *http.Request) {
			for i := range len(valid) {
				io.WriteString(w, valid[i:i+1])
				w.(http.Flusher).Flush()
			}
		}, completed, 1},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) { compressed(w, valid) }, completed, 1},
		{"another content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, valid)
		}, completed, 1},
		{"white space around", send("\n " + valid + " \n"), completed, 1},
		{"empty", send(""), invalid, 1},
		{"too large", send(`{"choices":"` + strings.Repeat("a", maxBody) + `"}`), invalid, 1},
		{"compressed to more than the bound", func(w http.ResponseWriter, _ *http.Request) {
			compressed(w, `{"a":"`, strings.Repeat("a", maxBody), `"}`)
		}, invalid, 1},
		{"no valid compression", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, valid)
		}, invalid, 1},
		{"too many values", send(`{"choices":[` + strings.Repeat("0,", maxValues) + `0]}`), invalid, 1},
		{"too deep", send(strings.Repeat("[", 100_000)), invalid, 1},
		{"not UTF-8", send(strings.Replace(valid, "A", "\xff", 1)), invalid, 1},
		{"not JSON", send("A"), invalid, 1},
		{"HTML", send("<html>A</html>"), invalid, 1},
		{"trailing bytes", send(valid + "x"), invalid, 1},
		{"two values", send(valid + valid), invalid, 1},
		{"an array", send("[" + valid + "]"), invalid, 1},
		{"null", send("null"), invalid, 1},
		{"cut", hijack("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+valid, false), unreachable, 2},
		{"cut within a chunk", hijack("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n"+valid, false), unreachable, 2},
		{"an error that is cut", hijack("HTTP/1.1 429 Too Many\r\nContent-Length: 1000\r\n\r\n{}", false), unreachable, 2},
		{"reset before the response", hijack("", true), unreachable, 2},
		{"reset within the response", hijack("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", true), unreachable, 2},
		{"not HTTP", hijack("A\r\n\r\n", false), unreachable, 2},
		{"endless headers", hijack("HTTP/1.1 200 OK\r\nA: "+strings.Repeat("a", 2*maxHeaders), false), unreachable, 2},
		{"another protocol", hijack("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false), invalid, 1},
	} {
		url, requests := serverOf(t, test.handler)
		got, attrs := outcome(t, newTest(t, "chat", url), testJob("m", false))
		if !strings.Contains(got, test.want) || int(requests.Load()) != test.requests || attrs["requests"] != test.requests {
			t.Errorf("%s: %d requests, %.200s, %v; want %d, %s", test.name, requests.Load(), got, attrs, test.requests, test.want)
		}
	}
}

// TestFailedConnectionIsTriedTwice: a refused connection, an unknown CA and a name that does not exist are tried twice.
func TestFailedConnectionIsTriedTwice(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	l.Close()
	secure := httptest.NewTLSServer(enginestest.Answer(200, "{}"))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	for _, url := range []string{refused, secure.URL, "http://host.invalid"} {
		got, attrs := outcome(t, newTest(t, "chat", url), testJob("m", false))
		if !strings.Contains(got, `"provider_unreachable","message":"The API could not be reached."`) || attrs["requests"] != 2 || attrs["status"] != nil || attrs["detail"] == nil {
			t.Errorf("%s: %s, %v", url, got, attrs)
		}
	}
}

// TestRefusedHTTP2RequestIsTriedTwice: a server that ends each HTTP/2 connection, and says that it has not processed the
// request, gets two requests, and not as many as the time allows.
func TestRefusedHTTP2RequestIsTriedTwice(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: secure.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var requests atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00") // SETTINGS (RFC 9113)
				io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
				const typeOf, flags, data, endStream = 3, 4, 0, 1
				for header := make([]byte, 9); header[typeOf] != data || header[flags]&endStream == 0; {
					if _, err := io.ReadFull(c, header); err != nil {
						return
					}
					length := int64(header[0])<<16 | int64(header[1])<<8 | int64(header[2])
					io.CopyN(io.Discard, c, length)
				}
				requests.Add(1)
				io.WriteString(c, "\x00\x00\x08\x07"+strings.Repeat("\x00", 13)) // GOAWAY: the last stream is 0, no error
				io.Copy(io.Discard, c)
			}()
		}
	}()
	x := newTest(t, "chat", "https://"+l.Addr().String(), func(c *Config) { c.Timeout = 10 * time.Second })
	x.transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	got, attrs := outcome(t, x, testJob("m", false))
	if !strings.Contains(got, `"code":"provider_unreachable"`) || attrs["requests"] != 2 || requests.Load() != 2 {
		t.Errorf("%d requests, %s, %v", requests.Load(), got, attrs)
	}
}

// TestNoRedirectIsFollowed: no redirect is followed, and the target gets no request.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	target, requests := serverOf(t, enginestest.Answer(200, ofChat(`{"message":{"content":"A"}}`)))
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		for _, to := range []string{target, "/chat/completions", "://"} {
			url, _ := serverOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			got, attrs := outcome(t, newTest(t, "chat", url), testJob("m", false))
			if !strings.Contains(got, `"outcome":"unavailable","reason":"configuration"`) || attrs["requests"] != 1 || strings.Contains(fmt.Sprint(got, attrs), target) {
				t.Errorf("%d to %s: %s, %v", status, to, got, attrs)
			}
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the target got %d requests", n)
	}
}

// TestPassingFailureIsRepeatedOnce: one request of a job is repeated after a failure that may pass, if there is time. Others are not.
func TestPassingFailureIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	answer := func(status int) http.HandlerFunc { return enginestest.Answer(status, "") }
	ok := enginestest.Answer(200, ofAnthropic("end_turn", `{"type":"text","text":"A"}`))
	reset := hijack("", true)
	pausing := paused(`{"type":"text","text":"A"}`)
	for _, test := range []struct {
		name     string
		answers  []http.HandlerFunc
		timeout  time.Duration
		requests int
		want     string
	}{
		{"500", []http.HandlerFunc{answer(500), ok}, time.Minute, 2, "completed"},
		{"502", []http.HandlerFunc{answer(502), ok}, time.Minute, 2, "completed"},
		{"a reset", []http.HandlerFunc{reset, ok}, time.Minute, 2, "completed"},
		{"twice", []http.HandlerFunc{reset, answer(500), ok}, time.Minute, 2, "provider_error"},
		{"twice, the other way around", []http.HandlerFunc{answer(500), reset, ok}, time.Minute, 2, "provider_unreachable"},
		{"once for a job", []http.HandlerFunc{answer(500), pausing, answer(500), ok}, time.Minute, 3, "provider_error"},
		{"in a turn that goes on", []http.HandlerFunc{pausing, answer(500), ok}, time.Minute, 3, "completed"},
		{"without time", []http.HandlerFunc{answer(500), ok}, 4 * time.Second, 1, "provider_error"},
		{"503", []http.HandlerFunc{answer(503), ok}, time.Minute, 1, "throttled"},
		{"529", []http.HandlerFunc{answer(529), ok}, time.Minute, 1, "throttled"},
		{"429", []http.HandlerFunc{answer(429), ok}, time.Minute, 1, "throttled"},
		{"504", []http.HandlerFunc{answer(504), ok}, time.Minute, 1, "provider_timeout"},
		{"520", []http.HandlerFunc{answer(520), ok}, time.Minute, 1, "provider_error"},
		{"no answer", []http.HandlerFunc{enginestest.Answer(200, "{}"), ok}, time.Minute, 1, "invalid_response"},
	} {
		s := enginestest.New(t, "anthropic")
		s.Then(test.answers...)
		got, attrs := outcome(t, newTest(t, "anthropic", s.URL, func(c *Config) { c.Timeout = test.timeout }), testJob("m", true))
		if !strings.Contains(got, `"`+test.want+`"`) || len(s.Requests()) != test.requests || attrs["requests"] != test.requests {
			t.Errorf("%s: %d requests, %s", test.name, len(s.Requests()), got)
		}
	}
	if x := New(Config{Engine: "openai"}); x.pause != time.Second {
		t.Errorf("a request is repeated after %v, want 1 s", x.pause)
	}
}

// TestEndedJobAbortsItsRequest: a job whose time is over is retried; one that is lost or canceled is released, and its request is
// aborted.
func TestEndedJobAbortsItsRequest(t *testing.T) {
	t.Parallel()
	aborted := make(chan struct{}, 10)
	began := make(chan struct{}, 10)
	url, _ := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		began <- struct{}{}
		<-r.Context().Done()
		aborted <- struct{}{}
	})
	x := newTest(t, "chat", url, func(c *Config) { c.Timeout = time.Millisecond })
	x.transport = silent{}
	got, attrs := outcome(t, x, testJob("m", false))
	if !strings.Contains(got, `"code":"provider_timeout"`) || attrs["requests"] != 1 {
		t.Errorf("%s, %v", got, attrs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if o := newTest(t, "chat", url).Execute(ctx, testJob("m", false)); o != (work.Released{}) {
		t.Errorf("%#v", o)
	}
	<-aborted
}

// A silent transport never gets a response.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestCheckURL: http is for loopback hosts, and for chat without a key.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, url string
		key, want bool
	}{
		{"openai", "", true, true}, {"chat", "", false, false}, {"openai", "https://eu.api.openai.com/v1", true, true}, {"openai", "https://proxy:8443/a/b/", true, true},
		{"openai", "http://127.0.0.1:1/v1", true, true}, {"openai", "http://localhost/v1", true, true}, {"openai", "http://[::1]:1", true, true},
		{"openai", "http://proxy/v1", true, false}, {"chat", "http://ollama:11434/v1", false, true}, {"chat", "http://ollama:11434/v1", true, false},
		{"openai", "http://127.0.0.1.example.org", true, false}, {"openai", "https://u:p@host", true, false}, {"openai", "https://u@host", true, false},
		{"openai", "https://host?a", true, false}, {"openai", "https://host?", true, false}, {"openai", "https://host#", true, false}, {"openai", "https://", true, false},
		{"openai", "ftp://127.0.0.1", true, false}, {"openai", "host/v1", true, false}, {"openai", "https://ho st", true, false},
		{"openai", "https://host:65535", true, true}, {"openai", "https://host:", true, true}, {"openai", "https://host:65536", true, false}, {"openai", "https://host:0", true, false},
	} {
		if err := CheckURL(test.name, test.url, test.key); (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
