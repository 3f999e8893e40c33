package engines

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
	"aiv/store/storetest"
)

var update = flag.Bool("update", false, "write the golden files")

// testJob returns a job of a model. Its run has another country and language than its question.
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
	check(t, err)
	cfg := Config{Engine: engine, URL: url, Key: key, Timeout: time.Minute, MaxOutput: 16384, Parallel: 4}
	for _, c := range change {
		c(&cfg)
	}
	x := New(cfg)
	x.pause, x.linkTime, x.linksTime = 0, time.Minute, time.Minute
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

// explain returns the JSON that Explain writes of the request of a job.
func explain(t *testing.T, engine, url string, job work.Job) string {
	t.Helper()
	var out strings.Builder
	check(t, New(Config{Engine: engine, URL: url, MaxOutput: 16384}).Explain(&out, job, true, true))
	return out.String()
}

var check = storetest.Must

// TestRequestsEqualGoldenFiles compares the request of each engine with a golden file, as -explain -json prints it, and
// sends it to the fake of the API, which accepts nothing else. Only its header has the key. No answer reports a search
// that the job has not asked for.
func TestRequestsEqualGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, engine := range Names() {
		for suffix, grounded := range map[string]bool{"": false, "_grounded": true} {
			t.Run(engine+suffix, func(t *testing.T) {
				t.Parallel()
				url := "" // of the API
				if engine == "chat" {
					url = "http://127.0.0.1:11434/v1"
				}
				job := testJob("model/1", grounded)
				explained := explain(t, engine, url, job)
				var indented bytes.Buffer
				check(t, json.Indent(&indented, []byte(explained), "", " "))
				golden(t, filepath.Join("testdata", "requests", engine+suffix+".json"), indented.String())

				s := enginestest.New(t, engine)
				got, attrs := outcome(t, newTest(t, engine, s.URL), job)
				if !strings.HasPrefix(got, completed) || !grounded && !strings.Contains(got, `"searched":false`) {
					t.Fatalf("the fake does not accept the request, or its answer is wrong: %s, %v", got, attrs)
				}
				sent := s.Requests()[0]
				if !strings.HasSuffix(explained, `,"body":`+sent.Body+"}\n") {
					t.Errorf("-explain prints another body than %s:\n%s", sent.Body, explained)
				}
				if n := strings.Count(fmt.Sprint(sent), enginestest.Key); n != 1 {
					t.Errorf("the request has the key %d times: %+v", n, sent)
				}
			})
		}
	}
}

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		check(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	check(t, err)
	storetest.Equal(t, string(want), got, file)
}

// TestPromptsOfRuns: country, language and locale are taken from the run. Each is sent as a parameter or in the prompt.
func TestPromptsOfRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ engine, language, locale, country, want string }{
		{"perplexity", "pt-BR", "pt-BR", "BR", `}],"language_preference":"pt","max_output_tokens"`},
		{"perplexity", "fil", "fil-PH", "PH", `}],"max_output_tokens"`}, // no code of two letters
		{"openai", "pt-BR", "pt-BR", "BR", `"instructions":"Answer in the language with the code pt-BR (locale pt-BR)."`},
	} {
		job := testJob("m", true)
		job.Language, job.Locale, job.Country = test.language, test.locale, test.country
		if got := explain(t, test.engine, "", job); !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
