package engines

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestKeyStaysSecret: whatever an API repeats, the key is in no settlement and no line of the log.
func TestKeyStaysSecret(t *testing.T) {
	t.Parallel()
	const key = enginestest.Key
	const inError = `{"type":"error","code":"KEY","message":"x KEY","error":{"type":"KEY","code":"KEY","status":"KEY","message":"the key KEY is bad"},"detail":[{"msg":"KEY"}]}`
	for _, name := range Names() {
		short := enginestest.New(t, name).Short()
		var responses []http.RoundTripper
		for _, replaced := range []string{"Kovalt", "shoes", "kovalt", "gpt-6-sol", "claude-haiku-4-5-20251001",
			"gemini-3.8-flash", "perplexity/sonar", "grok-4.7", "local-7b-q4", "completed", "end_turn", "STOP", "stop"} {
			body := strings.ReplaceAll(short, replaced, key)
			responses = append(responses, canned{200, map[string]string{"X-Request-Id": "req-" + key}, body})
		}
		for _, status := range []int{302, 400, 401, 403, 404, 422, 429, 500, 503} {
			for _, body := range []string{inError, `{"code":"KEY","error":"the key KEY"}`, "KEY"} {
				header := map[string]string{"X-Request-Id": key, "Location": "https://" + key}
				responses = append(responses, canned{status, header, strings.ReplaceAll(body, "KEY", key)})
			}
		}
		broken := []error{fmt.Errorf("malformed HTTP response %q", key), textproto.ProtocolError("malformed MIME header: " + key)}
		details := []any{"malformed HTTP response …", "a header of the response is not valid"}
		for _, err := range broken {
			responses = append(responses, roundTrip(func(*http.Request) (*http.Response, error) { return nil, err }))
		}
		for i, response := range responses {
			x := newTest(t, name, "http://127.0.0.1:1")
			x.transport = response
			got, attrs := outcome(t, x, testJob("m", true))
			text, n := fmt.Sprint(got, attrs), i-(len(responses)-len(broken))
			if strings.Contains(text, key) || n >= 0 && attrs["detail"] != details[n] {
				t.Errorf("%s, response %d: %s", name, i, text)
			}
		}
	}
}

// TestKeyFile: the file is read again for each job. If it is not valid then, the last key stays, and the log warns
// once.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(text string) { t.Helper(); check(t, os.WriteFile(file, []byte(text), 0o600)) }
	for _, bad := range []string{"", " \n", "two words", "ключ", "a\x00b", strings.Repeat("a", 4097), strings.Repeat("a ", 9000)} {
		write(bad)
		_, err := ReadKey(file, slog.Default())
		if err == nil || !strings.Contains(err.Error(), file) || len(bad) > 2 && strings.Contains(err.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	var log bytes.Buffer
	s := enginestest.New(t, "openai")
	write("\n" + enginestest.Key + "\r\n")
	key, err := ReadKey(file, slog.New(slog.NewTextHandler(&log, nil)))
	check(t, err)
	x := newTest(t, "openai", s.URL, func(c *Config) { c.Key = key })
	for _, step := range []struct {
		what   string
		change func()
		accept string
	}{
		{"the first key", func() {}, enginestest.Key},
		{"the second key", func() { write("the-second-key") }, "the-second-key"},
		{"a file that is not valid", func() { write("not valid") }, "the-second-key"},
		{"no file", func() { check(t, os.Remove(file)) }, "the-second-key"},
		{"the third key", func() { write("the-third-key") }, "the-third-key"},
	} {
		step.change()
		s.Accept(step.accept)
		if got, _ := outcome(t, x, testJob("m", true)); !strings.HasPrefix(got, completed) {
			t.Errorf("%s: %s", step.what, got)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || strings.Contains(log.String(), "not valid") {
		t.Errorf("%d warnings: %s", n, &log)
	}
}

// TestPlaceholderIsNoSecret: a key that is too short to be secret is a word that an answer may have.
func TestPlaceholderIsNoSecret(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"ollama": "of ollama", "token-abc123": "of [key]"} {
		x := newTest(t, "chat", "http://127.0.0.1:1", func(c *Config) { c.Key = &Key{value: key} })
		x.transport = canned{200, nil, ofChat(`{"message":{"content":"of ` + key + `"}}`)}
		if got, _ := outcome(t, x, testJob("m", false)); !strings.Contains(got, `"text":"`+want+`"`) {
			t.Errorf("with the key %s: %s", key, got)
		}
	}
}
