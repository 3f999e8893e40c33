package engines

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
)

// What a settlement contains.
const (
	completed      = `{"outcome":"completed"`
	unavailableFor = `"outcome":"unavailable","reason":`
	unreachable    = `"code":"provider_unreachable"`
	notValid       = `"code":"invalid_response"`
)

var answerOfChat = ofChat(`{"message":{"content":"A"}}`)

// hijack closes the connection after it has sent some bytes. reset does so without an end of the stream.
func hijack(sent string) http.HandlerFunc { return send(sent, -1) }
func reset(sent string) http.HandlerFunc  { return send(sent, 0) }

func send(sent string, linger int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		io.WriteString(c, sent)
		c.(*net.TCPConn).SetLinger(linger)
	}
}

func compressed(text string) http.HandlerFunc {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return enginestest.Answer(200, b.String(), "Content-Encoding", "gzip")
}

// TestEachFormOfBodyHasAnOutcome: each form of a body has its outcome. A body is read up to a bound, whether it is
// compressed or not. A request is repeated if its response is not complete, unless its status says enough.
func TestEachFormOfBodyHasAnOutcome(t *testing.T) {
	t.Parallel()
	valid := answerOfChat
	of := func(body string) http.HandlerFunc { return enginestest.Answer(200, body) }
	tooLarge := `{"choices":"` + strings.Repeat("a", maxBody) + `"}`
	for want, handlers := range map[string]map[string]http.HandlerFunc{
		completed: {
			"chunked and slow": func(w http.ResponseWriter, _ *http.Request) {
				for i := range len(valid) {
					io.WriteString(w, valid[i:i+1])
					w.(http.Flusher).Flush()
				}
			},
			"compressed":           compressed(valid),
			"another content type": enginestest.Answer(200, "\n "+valid+" \n", "Content-Type", "text/html"),
		},
		notValid: {
			"too large":                         of(tooLarge),
			"compressed to more than the bound": compressed(tooLarge),
			"no valid compression":              enginestest.Answer(200, valid, "Content-Encoding", "gzip"),
			"too many values":                   of(`{"new":[` + strings.Repeat("0,", maxValues) + `0],` + valid[1:]),
			"too deep":                          of(strings.Repeat("[", 100_000)),
			"not UTF-8":                         of(strings.Replace(valid, "A", "\xff", 1)),
			"another protocol":                  hijack("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
		},
		`"outcome":"throttled","after_seconds":33`: {
			"a limit whose body is cut": hijack("HTTP/1.1 429 Too Many\r\nRetry-After: 33\r\nContent-Length: 1000\r\n\r\n{}"),
		},
		unavailableFor + `"secret"`: {
			"a rejection whose body is cut": hijack("HTTP/1.1 401 No\r\nContent-Length: 1000\r\n\r\n{}"),
		},
		unreachable: {
			"cut":                       hijack("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + valid),
			"cut within a chunk":        hijack("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + valid),
			"an error that is cut":      hijack("HTTP/1.1 404 Not Found\r\nContent-Length: 1000\r\n\r\n{}"),
			"reset within the response": reset("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"),
			"endless headers":           hijack("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 2*maxHeaders)),
		},
	} {
		for name, handler := range handlers {
			requests := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				requests++ // the requests of a job come one after the other
				handler(w, r)
			}))
			got, attrs := outcome(t, newTest(t, "chat", s.URL), testJob("m", false))
			s.Close()
			wanted := 1
			if want == unreachable {
				wanted = 2
			}
			if !strings.Contains(got, want) || requests != wanted || attrs["requests"] != wanted {
				t.Errorf("%s: %d requests, %.200s, %v; want %d, %s", name, requests, got, attrs, wanted, want)
			}
		}
	}
}

// A roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEndedJobAbortsItsRequest: a job whose time is over is retried; one that is lost or canceled is released, unless
// its answer has come. The transport cannot repeat a request, which it would do with a body that it can get again.
func TestEndedJobAbortsItsRequest(t *testing.T) {
	t.Parallel()
	x := newTest(t, "chat", "http://127.0.0.1:1", func(c *Config) { c.Timeout = time.Millisecond })
	if r, _, err := x.newRequest(t.Context(), x.prompt(new(testJob("m", true))), ""); err != nil || r.GetBody != nil {
		t.Errorf("the transport may repeat a request (%v)", err)
	}
	silent := roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	x.transport = silent
	got, attrs := outcome(t, x, testJob("m", false))
	if !strings.Contains(got, `"code":"provider_timeout"`) || attrs["requests"] != 1 {
		t.Errorf("%s, %v", got, attrs)
	}
	for want, rest := range map[string]http.RoundTripper{
		`{"outcome":"released"}`: silent,
		`{"outcome":"completed"`: canned{200, nil, answerOfChat},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		x = newTest(t, "chat", "http://127.0.0.1:1")
		x.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			cancel()
			return rest.RoundTrip(r)
		})
		if got := string(work.Encode(x.Execute(ctx, testJob("m", false)))); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestCheckURL: http is for loopback hosts, and for chat without a key.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		valid  bool
		engine string
		key    bool
		urls   []string
	}{
		{true, "openai", true, append(strings.Fields(`https://eu.api.openai.com/v1 https://proxy:8443/a/b/ https://host:65535 https://host:
			http://127.0.0.1:1/v1 http://localhost/v1 http://[::1]:1`), "")},
		{false, "openai", true, strings.Fields(`http://proxy/v1 http://127.0.0.1.example.org https://u:p@host https://u@host https://host?a
			https://host? https://host# https:// ftp://127.0.0.1 host/v1 https://ho%zz https://host:65536 https://host:0`)},
		{true, "chat", false, []string{"http://ollama:11434/v1"}},
		{false, "chat", true, []string{"http://ollama:11434/v1"}},
		{false, "chat", false, []string{""}},
	} {
		for _, url := range test.urls {
			if err := CheckURL(test.engine, url, test.key); (err == nil) != test.valid {
				t.Errorf("%s, key %t, %q: %v", test.engine, test.key, url, err)
			}
		}
	}
}
