package engines

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
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
	for _, name := range Names() {
		short := enginestest.New(t, name).Short()
		answers := []string{
			strings.ReplaceAll(short, "Kovalt", key), strings.ReplaceAll(short, "shoes", key), strings.ReplaceAll(short, "kovalt.example", key+".example"),
			strings.NewReplacer("gpt-6-sol", key, "claude-haiku-4-5-20251001", key, `"modelVersion":"`, `"modelVersion":"`+key, "perplexity/sonar", key, "grok-4.7", key, "local-7b-q4", key).Replace(short),
			strings.NewReplacer(`"completed"`, `"`+key+`"`, `"end_turn"`, `"`+key+`"`, `"STOP"`, `"`+key+`"`, `"stop"`, `"`+key+`"`).Replace(short),
		}
		for _, body := range answers {
			checkSecret(t, name, canned{200, map[string]string{"X-Request-Id": "req-" + key}, body})
		}
		body := fmt.Sprintf(`{"type":"error","code":%[1]q,"message":"x %[1]s","error":{"type":%[1]q,"code":%[1]q,"status":%[1]q,"message":"the key %[1]s is bad"},"detail":[{"msg":%[1]q}]}`, key)
		for _, status := range []int{302, 400, 401, 403, 404, 422, 429, 500, 503} {
			checkSecret(t, name, canned{status, map[string]string{"X-Request-Id": key, "Location": "https://" + key}, body})
			checkSecret(t, name, canned{status, nil, fmt.Sprintf(`{"code":%[1]q,"error":"the key %[1]s"}`, key)})
			checkSecret(t, name, canned{status, nil, key})
		}
		x := newTest(t, name, "http://127.0.0.1:1")
		x.transport = broken{fmt.Errorf("malformed HTTP response %q", key)}
		got, attrs := outcome(t, x, testJob("m", true))
		if text := fmt.Sprint(got, attrs); strings.Contains(text, key) || !strings.Contains(text, "[key]") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func checkSecret(t *testing.T, name string, c canned) {
	t.Helper()
	got, attrs := settled(t, name, true, c)
	if text := fmt.Sprint(got, attrs); strings.Contains(text, enginestest.Key) {
		t.Errorf("%s: %d %s: %s", name, c.status, c.body, text)
	}
}

type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// TestKeyHeader: the key is in the one header of the API and nowhere else of a request.
func TestKeyHeader(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		s := enginestest.New(t, name)
		outcome(t, newTest(t, name, s.URL), testJob("m", true))
		r := s.Requests()[0]
		if n := strings.Count(fmt.Sprint(r.Header, r.Path, r.Body), enginestest.Key); n != 1 {
			t.Errorf("%s: the request has the key %d times: %+v", name, n, r)
		}
	}
}

// TestKeyFile: the file is read again for each job. If it is not valid then, the last key stays, and the log warns
// once.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", " \n", "two words", "ключ", "a\x00b", strings.Repeat("a", 4097), strings.Repeat("a ", 9000)} {
		write(bad)
		if _, err := ReadKey(file, slog.Default()); err == nil || !strings.Contains(err.Error(), file) || len(bad) > 2 && strings.Contains(err.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	write("\n" + enginestest.Key + "\r\n")
	var log bytes.Buffer
	key, err := ReadKey(file, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := enginestest.New(t, "openai")
	x := newTest(t, "openai", s.URL, func(c *Config) { c.Key = key })
	run := func(what string) {
		t.Helper()
		if got, _ := outcome(t, x, testJob("m", true)); !strings.Contains(got, `"outcome":"completed"`) {
			t.Errorf("%s: %s", what, got)
		}
	}
	run("the first key")
	write("the-second-key")
	s.Accept("the-second-key")
	run("the second key")
	write("not valid")
	run("a file that is not valid")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	run("no file")
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || strings.Contains(log.String(), "not valid") {
		t.Errorf("%d warnings: %s", n, &log)
	}
	write("the-third-key")
	s.Accept("the-third-key")
	run("the third key")
}
