package main

import (
	"path/filepath"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestEngineKeyIsNotPrinted: neither -explain nor an error prints the key. testdata/commands/explain.txt has the rest.
func TestEngineKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, "two words")
	for _, test := range []struct {
		args, key string // in the environment
		code      int
		want      string
	}{
		{"-explain -engine-max-output 256", enginestest.Key, 0, `"max_output_tokens": 256`},
		{"-try -engine-key-file " + file, "", 1, file + " does not contain a key"},
		{"-try", "two words", 1, "OPENAI_API_KEY does not contain a key"},
		{"-try", " ", 2, "OPENAI_API_KEY"},
	} {
		var printed strings.Builder
		p := testProgram(&printed, &printed, map[string]string{"OPENAI_API_KEY": test.key})
		code := p.Run(t.Context(), words("work -engine openai -model m "+test.args))
		if code != test.code || !strings.Contains(printed.String(), test.want) ||
			strings.Contains(printed.String(), enginestest.Key) || strings.Contains(printed.String(), "two words") {
			t.Errorf("aiv work %s: exit %d, want %d, %s: %s", test.args, code, test.code, test.want, &printed)
		}
	}
}
