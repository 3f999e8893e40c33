package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		{"/home/a/cache/64/" + entry, module, inPath, "go run ./cmd/aiv", module}, // with another GOCACHE
		{filepath.Join(inPath, "aiv"), module, inPath, "aiv", ""},
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
