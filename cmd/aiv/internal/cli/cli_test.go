package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestNearestCommandIsSuggested(t *testing.T) {
	t.Parallel()
	words := []string{"create", "list", "set", "rotate", "revoke", "disable", "enable"}
	for word, want := range map[string]string{
		"": "", "x": "", "lst": "list", "lsit": "list", "List": "list", "revok": "revoke", "rvoke": "revoke", "diable": "disable", "delete": "", "é": "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestTerminals: the null device and files are none, so that no secret stays in a file.
func TestTerminals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{os.DevNull: false, filepath.Join(t.TempDir(), "file"): false, "/dev/ptmx": true} {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := IsTerminal(f); got != want {
			t.Errorf("%s: %t", name, got)
		}
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

// TestInputIsInterrupted: a named pipe without a writer, and one without data, is not waited for after the end of the
// context.
func TestInputIsInterrupted(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Call{Program: &Program{}}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Input(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: error %v, want that of the context", err)
	}
	writer, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { writer.Close() }).Stop()
	defer writer.Close()
	ctx, cancel = context.WithCancel(t.Context())
	file, err := c.Input(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("without data: error %v, want that of the context", err)
	}
}
