package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"aiv/store/storetest"
)

// TestTerminals: the null device and files are none, so that no secret stays in a file.
func TestTerminals(t *testing.T) {
	for name, want := range map[string]bool{os.DevNull: false, filepath.Join(t.TempDir(), "file"): false, "/dev/ptmx": true} {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		storetest.Must(t, err)
		defer f.Close()
		storetest.Equal(t, want, IsTerminal(f), name)
	}
}

// TestFailedReplacementLeavesNoFile: what was written is removed if it cannot be renamed.
func TestFailedReplacementLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	err := ReplaceFile(name, func(io.Writer) error { return os.Mkdir(name, 0o700) })
	if left, _ := os.ReadDir(dir); err == nil || len(left) != 1 {
		t.Errorf("got %v, and the files %v", err, left)
	}
}
