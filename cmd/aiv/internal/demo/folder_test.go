package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrepareFolder: the demonstration uses only a folder that it made, alone, and changes nothing of another.
func TestPrepareFolder(t *testing.T) {
	t.Parallel()
	mark := func(dir string) error { _, err := markFolder(dir); return err }
	const used, unmarked, noFolder = "", "is not empty and has no file aiv-demo", "is not a folder"
	for _, test := range []struct {
		name    string
		prepare func(dir string) error
		reason  string
	}{
		{"does not exist", func(string) error { return nil }, used},
		{"marked and used", func(dir string) error {
			return errors.Join(mark(dir), os.Mkdir(filepath.Join(dir, "postgresql"), 0o700))
		}, used},
		{"an operator's data folder", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "aiv-private-postgresql"), nil, 0o600))
		}, unmarked},
		{"marked by a folder of that name", func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, marker), 0o755)
		}, unmarked},
		{"a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, noFolder},
		{"a link", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"-target", 0o755), os.Symlink(dir+"-target", dir))
		}, noFolder},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			dir := filepath.Join(base, "demo")
			must(t, test.prepare(dir))
			if test.reason != used {
				refuses(t, base, dir, dir+" "+test.reason+"; aiv demo uses only a folder that it made itself")
				return
			}
			for range 2 {
				data, release, err := PrepareFolder(dir)
				must(t, err)
				equal(t, filepath.Join(dir, "postgresql"), data, "data folder")
				refuses(t, base, dir, fmt.Sprintf("another aiv demo uses %s;", dir))
				release()
			}
		})
	}
}

// refuses checks that a folder is not used, for a reason, and that nothing below base changes.
func refuses(t *testing.T, base, dir, reason string) {
	t.Helper()
	files := func() (found []string) {
		must(t, filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
			found = append(found, path)
			return err
		}))
		return found
	}
	before := files()
	if _, _, err := PrepareFolder(dir); err == nil || !strings.HasPrefix(err.Error(), reason) {
		t.Errorf("got %v, want %s", err, reason)
	}
	equal(t, before, files(), "files")
}
