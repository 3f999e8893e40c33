package demo

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
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

// TestPrintedCommandsWorkLater: the printed commands work after the demonstration has ended. The executable of go run
// may be removed by then.
func TestPrintedCommandsWorkLater(t *testing.T) {
	module, inPath, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{
		filepath.Join(module, "cmd", "aiv", "main.go"), filepath.Join(inPath, "aiv"), filepath.Join(elsewhere, "aiv"),
	} {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, nil, 0o755))
	}
	linked := filepath.Join(elsewhere, "linked")
	must(t, os.Symlink(filepath.Join(inPath, "aiv"), linked))
	entry := strings.Repeat("0123456789abcdef", 4) + "-d/aiv" // of the build cache
	sub := filepath.Join(module, "cmd")
	for _, test := range []struct{ executable, folder, path, want, wantFolder string }{
		{"/tmp/go-build1137184895/b001/exe/aiv", module, inPath, "go run ./cmd/aiv", module},
		{"/tmp/go-build1137184895/b001/exe/aiv", sub, inPath, "go run aiv/cmd/aiv", sub},
		{"/home/a/.cache/go-build/64/" + entry, module, inPath, "go run ./cmd/aiv", module},
		{linked, module, inPath, "aiv", ""},
		{filepath.Join(elsewhere, "aiv"), module, inPath, filepath.Join(elsewhere, "aiv"), ""},
		{filepath.Join(inPath, "aiv"), module, "", filepath.Join(inPath, "aiv"), ""},
	} {
		t.Chdir(test.folder)
		t.Setenv("PATH", test.path)
		command, folder, err := Program(test.executable)
		must(t, err)
		equal(t, []string{test.want, test.wantFolder}, []string{command, folder}, test.executable+" in "+test.folder)
	}
}
