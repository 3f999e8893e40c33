package demo

import (
	"bytes"
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
		{nil, "RUN=$(ask first-$NEW openai/gpt-5-search |"},
		{[]string{"anthropic", "openai"}, "RUN=$(ask first-$NEW google/gemini-2.5-pro |"},
		{[]string{"mistral"}, "five seconds later: the run is completed"},
		{workedProviders, "the run waits for the workers that you start below"},
		{[]string{"openai"}, " work -url http://127.0.0.1:8081 -token-file worker.token -provider mistral -parallel 4 -- sh answer.sh\n"},
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
	}
	for _, p := range append(slices.Clone(workedProviders), handProvider) {
		if !slices.Contains(Providers(), p) {
			t.Errorf("%s is not in the sample catalog", p)
		}
	}
	for _, m := range append(slices.Clone(sampleModels), "openai/gpt-6-sol") {
		if !bytes.Contains(sampleCatalog, []byte(`"id": "`+m+`"`)) {
			t.Errorf("%s is not in the sample catalog", m)
		}
	}
}
