package main

import (
	"path/filepath"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestExplainPrintsNoKey: -explain prints the request of a sample or of a job in a file, needs no key, and never prints
// one. Without a key, chat gets none.
func TestExplainPrintsNoKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		write(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	job := file("job", `{"id":"job_1","attempt":1,"new":[],"measurement_type":"ungrounded","model":{"id":"a/b","provider":"p","provider_model":"gpt 7"},`+
		`"question":{"id":"q","text":"What?","language":"de","country":"DE"},"locale":"pt-BR","country":"BR","language":"pt-BR"}`)
	const chatRequest = `POST http://127.0.0.1:1/v1/chat/completions HTTP/1.1
Accept: application/json
Content-Type: application/json
User-Agent: aiv-work/1

{
  "model": "m",
`
	for _, test := range []struct {
		args, stdin string
		env         map[string]string
		code        int
		want        []string
	}{
		{"-engine openai -explain", "", nil, 0, []string{"POST https://api.openai.com/v1/responses HTTP/1.1\n", "Authorization: Bearer KEY\n", `"model": "MODEL"`, `"input": "Which running shoes are best for beginners?"`}},
		{"-engine openai -explain -model m -engine-max-output 256", "", map[string]string{"OPENAI_API_KEY": enginestest.Key}, 0, []string{`"model": "m"`, `"max_output_tokens": 256`}},
		{"-engine gemini -explain -json -job " + job, "", nil, 0, []string{`{"method":"POST","url":"https://generativelanguage.googleapis.com/v1beta/models/gpt%207:generateContent","headers":{"accept":`,
			"ISO 3166-1 code BR. Answer in the language with the code pt-BR (locale pt-BR).", `"x-goog-api-key":"KEY"`}},
		{"-engine xai -explain -job -", `{"measurement_type":"grounded","model":{"provider_model":"m"},"question":{"text":"Q"},"locale":"a","country":"b","language":"c"}`, nil, 0, []string{`"content": "Q"`}},
		{"-engine xai -explain -job -", `{"measurement_type":"grounded"}`, nil, 1, []string{"does not contain a job as a claim returns it"}},
		{"-engine chat -explain -model m -engine-url http://127.0.0.1:1/v1/ -engine-max-output 300", "", nil, 0,
			[]string{chatRequest, `"max_tokens": 300`}},
		{"-engine chat -explain -engine-url http://127.0.0.1:1/v1 -engine-key-file " + filepath.Join(dir, "none"), "", nil, 0, []string{"Authorization: Bearer KEY\n"}},
		{"-engine openai -try -model m -engine-key-file " + file("key", "two words"), "", nil, 1, []string{filepath.Join(dir, "key") + " does not contain a key"}},
		{"-engine openai -try -model m", "", map[string]string{"OPENAI_API_KEY": "two words"}, 1, []string{"OPENAI_API_KEY does not contain a key"}},
		{"-engine openai -try -model m", "", map[string]string{"OPENAI_API_KEY": " "}, 2, []string{"OPENAI_API_KEY"}},
	} {
		var stdout, stderr strings.Builder
		p := testProgram(&stdout, &stderr, test.env)
		p.Stdin = strings.NewReader(test.stdin)
		code := p.Run(t.Context(), words("work "+test.args))
		printed := stdout.String() + stderr.String()
		if code != test.code {
			t.Errorf("aiv work %s: exit %d, want %d: %s", test.args, code, test.code, printed)
		}
		for _, w := range test.want {
			if !strings.Contains(printed, w) {
				t.Errorf("aiv work %s: %s lacks %s", test.args, printed, w)
			}
		}
		if strings.Contains(printed, enginestest.Key) || strings.Contains(printed, "two words") {
			t.Errorf("aiv work %s prints the key: %s", test.args, printed)
		}
	}
}
