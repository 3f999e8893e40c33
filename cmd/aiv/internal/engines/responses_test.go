package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
	"aiv/gateway/worker"
	"aiv/runs/answers"
)

// A canned transport gives the same response to every request.
type canned struct {
	status int
	header map[string]string
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	h := http.Header{}
	for k, v := range c.header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

// settled returns the outcome of a job whose requests all get one response. No link is requested.
func settled(t testing.TB, engine string, c canned) (string, map[string]any) {
	t.Helper()
	x := newTest(t, engine, "http://127.0.0.1:1")
	x.transport = c
	x.linkTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		t.Errorf("the link %s is requested", r.URL)
		return c.RoundTrip(r)
	})
	return outcome(t, x, testJob("m", true))
}

// ofChat makes a response with a choice.
func ofChat(choice string) string {
	return `{"model":"m-1","choices":[` + choice + `],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
}

// TestResponsesEqualGoldenFiles compares what a job settles after each response of an API, for each engine. A file has
// headers of a response, one a line, its status and body in one line, then the settlement, and what the log says in
// detail of an error. No redirect is followed: a client that does so, or reads where it leads, reports that it cannot.
func TestResponsesEqualGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, engine := range Names() {
		file := filepath.Join("testdata", "responses", engine+".txt")
		text, err := os.ReadFile(file)
		check(t, err)
		var got strings.Builder
		header := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "-> ") || strings.HasPrefix(line, "   ") {
				continue
			}
			got.WriteString(line)
			line = strings.TrimSuffix(line, "\n")
			if name, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(name, " ") {
				header[name] = value
			}
			number, body, _ := strings.Cut(line, " ")
			status, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			header["Location"], header["X-Request-Id"] = "://target", "req_1"
			settlement, attrs := settled(t, engine, canned{status, header, body})
			fmt.Fprintln(&got, "->", settlement)
			if detail := attrs["detail"]; detail != nil {
				fmt.Fprintln(&got, "  ", detail)
			}
			if attrs["model"] != "m" || attrs["requests"] == 0 || attrs["status"] != status || attrs["provider_request_id"] != "req_1" {
				t.Errorf("%s: the log has %v", line, attrs)
			}
			clear(header)
		}
		golden(t, file, got.String())
	}
}

// TestAnswersAreBounded: an answer is within the bounds of the worker interface, whatever the API sends.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	var queries []string
	annotations := []string{`{"type":"url_citation","url":"https://` + strings.Repeat("a", 2048) + `"}`} // too long, so it is dropped
	for i := range 150 {
		annotations = append(annotations, fmt.Sprintf(`{"type":"url_citation","url":"https://a.example/%d","title":"%s"}`, i, strings.Repeat("é", 600)))
		queries = append(queries, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("é", 600)))
	}
	text := strings.Repeat("€", 100_000)
	body := fmt.Sprintf(`{"status":"completed","model":"%s","output":[{"type":"web_search_call","action":{"type":"search","queries":[%s]}},%s]}`,
		strings.Repeat("m", 300), strings.Join(queries, ","), `{"type":"message","content":[{"type":"output_text","text":"`+text+
			`","annotations":[`+strings.Join(annotations, ",")+`]}]}`)
	x := newTest(t, "openai", "http://127.0.0.1:1")
	x.transport = canned{200, nil, body}
	a := x.Execute(t.Context(), testJob("m", true)).(work.Noted).Outcome.(work.Completed).Answer
	got := []int{len(a.Text), len(a.Citations), len(a.SearchQueries), len(*a.ModelVersion),
		utf8.RuneCountInString(*a.Citations[99].Title), utf8.RuneCountInString(a.SearchQueries[49])}
	if !slices.Equal(got, []int{262_143, 100, 50, 128, 512, 512}) || !a.Truncated || !strings.HasPrefix(text, a.Text) {
		t.Errorf("lengths of the text, citations, queries, version, a title and a query: %v", got)
	}
}

func FuzzOpenAI(f *testing.F)     { fuzz(f, "openai") }
func FuzzAnthropic(f *testing.F)  { fuzz(f, "anthropic") }
func FuzzGemini(f *testing.F)     { fuzz(f, "gemini") }
func FuzzPerplexity(f *testing.F) { fuzz(f, "perplexity") }
func FuzzXAI(f *testing.F)        { fuzz(f, "xai") }
func FuzzChat(f *testing.F)       { fuzz(f, "chat") }

// fuzz checks that a response of any form makes an answer within the bounds of the worker interface, or a fault.
func fuzz(f *testing.F, engine string) {
	f.Add(200, []byte(enginestest.New(f, engine).Short()))
	f.Add(200, []byte(`{"status":"completed","output":[{"type":"message","content":[{"type":"refusal"}]}],"content":[],"stop_reason":"pause_turn","choices":[{}],"candidates":[{}],"error":{"code":429}}`))
	f.Add(400, []byte(`[{"error":{"message":"x","details":[{"violations":[{"quotaValue":"0"}]}]},"detail":[{"msg":"x"}],"code":7}]`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			status = 200
		}
		x := New(Config{Engine: engine, URL: "http://127.0.0.1:1", Key: &Key{value: "key-0123456789"}, Timeout: 4 * time.Second, MaxOutput: 1000, Parallel: 1})
		x.transport = canned{status, nil, string(body)}
		o := x.Execute(t.Context(), testJob("m", true)).(work.Noted).Outcome
		if settled := work.Encode(o); strings.Contains(string(settled), "key-0123456789") || !json.Valid(settled) {
			t.Errorf("settles %s", settled)
		}
		c, ok := o.(work.Completed)
		if !ok {
			return
		}
		a := c.Answer
		text := func(s string, most int) bool {
			return utf8.ValidString(s) && !strings.ContainsRune(s, 0) && utf8.RuneCountInString(s) <= most
		}
		fits := text(a.Text, answers.MaxText) && len(a.Text) <= answers.MaxText && len(a.Citations) <= answers.MaxCitations && len(a.SearchQueries) <= answers.MaxSearchQueries &&
			(a.ModelVersion == nil || text(*a.ModelVersion, answers.MaxModelVersion)) && !blank(a.Text)
		for _, cited := range a.Citations {
			_, ok := worker.Domain(cited.URL)
			fits = fits && ok && text(cited.URL, answers.MaxURL) && (cited.Title == nil || text(*cited.Title, answers.MaxTitle))
		}
		for _, q := range a.SearchQueries {
			fits = fits && text(q, answers.MaxSearchQuery) && q != ""
		}
		if u := a.Usage; u != nil {
			for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.Searches} {
				fits = fits && (n == nil || *n >= 0 && *n <= answers.MaxUsage)
			}
		}
		if !fits {
			t.Errorf("an answer out of bounds: %+v", a)
		}
	})
}
