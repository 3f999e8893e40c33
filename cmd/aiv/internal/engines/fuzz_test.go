package engines

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/cmd/aiv/internal/work"
	"aiv/gateway/worker"
	"aiv/runs/answers"
)

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
