package engines

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
)

var update = flag.Bool("update", false, "write the golden requests")

// testJob returns a job of a model. Its country and language are the run's, and not those of the question.
func testJob(model string, grounded bool) work.Job {
	j := SampleJob(model)
	j.Question = work.Question{Text: "Wohin zum <Laufen> & Wandern?", Language: "de", Country: "DE"}
	if !grounded {
		j.MeasurementType = "ungrounded"
	}
	j.ReceivedAt = time.Now()
	j.ClaimedAt = j.ReceivedAt
	return j
}

// newTest returns an Executor that uses a fake, and does not wait before it repeats a request.
func newTest(t testing.TB, engine, url string, change ...func(*Config)) *Executor {
	t.Helper()
	key, err := NewKey(enginestest.Key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Engine: engine, URL: url, Key: key, Timeout: time.Minute, MaxOutput: 16384, Parallel: 4}
	for _, c := range change {
		c(&cfg)
	}
	x := New(cfg)
	x.pause = 0
	t.Cleanup(x.transport.(*http.Transport).CloseIdleConnections)
	return x
}

// outcome returns what a job settles, without the time, and the attributes of its line in the log.
func outcome(t testing.TB, x *Executor, job work.Job) (settled string, attrs map[string]any) {
	t.Helper()
	o := x.Execute(t.Context(), job)
	attrs = make(map[string]any)
	if n, ok := o.(work.Noted); ok {
		o = n.Outcome
		for i := 0; i+1 < len(n.Attrs); i += 2 {
			attrs[n.Attrs[i].(string)] = n.Attrs[i+1]
		}
	}
	if c, ok := o.(work.Completed); ok {
		if c.Answer.AnsweredAt.IsZero() {
			t.Error("answered_at is missing")
		}
		c.Answer.AnsweredAt = time.Time{}
		o = c
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `,"answered_at":"0001-01-01T00:00:00Z"`, "")
	return plain.Replace(string(work.Encode(o))), attrs
}

// TestRequestsEqualGoldenFiles compares the request of each engine with a golden file, as -explain -json prints it, and sends it to
// the fake of the API, which accepts nothing else.
func TestRequestsEqualGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		for _, grounded := range []bool{true, false} {
			file := name + ".json"
			if grounded {
				file = name + "_grounded.json"
			}
			t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
				t.Parallel()
				cfg := Config{Engine: name, MaxOutput: 16384}
				if name == "chat" {
					cfg.URL = "http://127.0.0.1:11434/v1"
				}
				var got, indented bytes.Buffer
				job := testJob("model/1", grounded)
				if err := New(cfg).Explain(&got, job, true, true); err != nil {
					t.Fatal(err)
				}
				if err := json.Indent(&indented, got.Bytes(), "", " "); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", "requests", file), indented.String())

				s := enginestest.New(t, name)
				if o, attrs := outcome(t, newTest(t, name, s.URL), job); !strings.HasPrefix(o, `{"outcome":"completed"`) {
					t.Fatalf("the fake does not accept the request: %s, %v", o, attrs)
				}
				var explained struct{ Body json.RawMessage }
				if err := json.Unmarshal(got.Bytes(), &explained); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(explained.Body), s.Requests()[0].Body); diff != "" {
					t.Errorf("-explain prints another body than is sent (-explained +sent):\n%s", diff)
				}
			})
		}
	}
}

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestPromptsOfRuns: country, language and locale are those of the run, and each is a parameter or said.
func TestPromptsOfRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ engine, language, locale, country, want string }{
		{"perplexity", "pt-BR", "pt-BR", "BR", `"language_preference":"pt"`},
		{"perplexity", "fil", "fil-PH", "PH", `"language_preference"`}, // none: it has no code of two letters
		{"openai", "pt-BR", "pt-BR", "BR", `"instructions":"Answer in the language with the code pt-BR (locale pt-BR)."`},
	} {
		job := testJob("m", true)
		job.Language, job.Locale, job.Country = test.language, test.locale, test.country
		var out bytes.Buffer
		if err := New(Config{Engine: test.engine, MaxOutput: 1000}).Explain(&out, job, true, true); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), test.want) != (test.language != "fil") {
			t.Errorf("%+v: %s", test, &out)
		}
	}
}

// TestFakesReject: the fakes reject unknown members, another method and path, a wrong key and a missing model, and
// the outcome is that of the API's error.
func TestFakesReject(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		s := enginestest.New(t, name)
		x := newTest(t, name, s.URL)
		body := x.engine.body
		extended := *x.engine
		x.engine = &extended
		extended.body = func(p *prompt) object { return append(body(p), member{"seed", 7}) }
		if o, _ := outcome(t, x, testJob("m", true)); !strings.Contains(o, `"code":"invalid_request"`) {
			t.Errorf("%s: an unknown member: %s", name, o)
		}
		extended.body = body
		if o, _ := outcome(t, x, testJob("missing-1", true)); !strings.Contains(o, `"code":"model_not_found"`) {
			t.Errorf("%s: a missing model: %s", name, o)
		}
		s.Accept("another")
		if o, attrs := outcome(t, x, testJob("m", true)); !strings.Contains(o, `"outcome":"unavailable","reason":"secret"`) || attrs["detail"] != nil {
			t.Errorf("%s: a wrong key: %s, %v", name, o, attrs)
		}
		extended.path = at("/other")
		if o, _ := outcome(t, x, testJob("m", true)); !strings.Contains(o, `"reason":"configuration"`) {
			t.Errorf("%s: a wrong address: %s", name, o)
		}
		if n := len(s.Requests()); n > 0 {
			t.Errorf("%s: %d requests were accepted", name, n)
		}
	}
}

// TestExplainShowsTheWholeRequest: the text has the whole address, and chat has no key unless it is given one, nor a limit.
func TestExplainShowsTheWholeRequest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	x := New(Config{Engine: "chat", URL: "http://127.0.0.1:1/v1/", MaxOutput: 16384})
	if err := x.Explain(&out, testJob("a", false), false, false); err != nil {
		t.Fatal(err)
	}
	const want = `POST http://127.0.0.1:1/v1/chat/completions HTTP/1.1
Accept: application/json
Content-Type: application/json
User-Agent: aiv-work/1

{
  "model": "a",
`
	if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), "max_tokens") {
		t.Error(&out)
	}
	out.Reset()
	x = New(Config{Engine: "chat", URL: "http://127.0.0.1:1/v1", MaxOutput: 300, LimitGiven: true})
	if err := x.Explain(&out, testJob("a", false), true, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Authorization: Bearer KEY\n") || !strings.Contains(out.String(), `"max_tokens": 300`) {
		t.Error(&out)
	}
}
