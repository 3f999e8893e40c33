package demo

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestTextOfEngines: two lines replace the sample worker by an engine; a demonstration that leaves providers to engines
// prints the command for each.
func TestTextOfEngines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		leave []string
		want  string
	}{
		{[]string{"anthropic", "openai"}, "RUN=$(ask first-$NEW google/gemini-2.5-pro |"},
		{workedProviders, "the run waits for the workers that you start below"},
		{nil, "\n/bin/aiv demo -leave openai\n/bin/aiv work -engine openai -provider openai -url http://127.0.0.1:8081 -token-file worker.token\n\n"},
		{[]string{"google", "xai"}, "\necho TOKEN >worker.token\n/bin/aiv work -engine gemini -provider google -url http://127.0.0.1:8081 -token-file worker.token\n" +
			"/bin/aiv work -engine xai -provider xai -url http://127.0.0.1:8081 -token-file worker.token\n\n"},
	} {
		var text strings.Builder
		service := Service{Program: "/bin/aiv", Workers: "http://127.0.0.1:8081", Leave: test.leave}
		service.Secrets.Token = "TOKEN"
		must(t, WriteText(&text, service))
		if !strings.Contains(text.String(), test.want) {
			t.Errorf("%v: the text lacks %q:\n%s", test.leave, test.want, &text)
		}
		for line := range strings.Lines(text.String()) {
			if command, comment, ok := strings.Cut(line, "# "); ok && (strings.TrimSpace(command) != "" || strings.ContainsAny(comment, "';")) {
				t.Errorf("pasted into zsh, this is more than a comment: %s", line) // zsh reads it as a command
			}
		}
	}
	for _, p := range append(slices.Clone(workedProviders), handProvider) {
		if !bytes.Contains(sampleCatalog, []byte(`"code": "`+p+`"`)) {
			t.Errorf("%s is not in the sample catalog", p)
		}
	}
	for _, m := range slices.AppendSeq(slices.Clone(sampleModels), maps.Values(engineModels)) {
		if !bytes.Contains(sampleCatalog, []byte(`"id": "`+m+`"`)) {
			t.Errorf("%s is not in the sample catalog", m)
		}
	}
}
