package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrepareFolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		prepare func(dir string) error
		reason  string // "": the folder is used
	}{
		{"does not exist", func(string) error { return nil }, ""},
		{"empty", func(dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		{"marked", func(dir string) error { _, err := markFolder(dir); return err }, ""},
		{"marked and used", func(dir string) error {
			_, err := markFolder(dir)
			return errors.Join(err, os.Mkdir(filepath.Join(dir, "postgresql"), 0o700))
		}, ""},
		{"an operator's data folder", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "aiv-private-postgresql"), nil, 0o600))
		}, "is not empty and has no file aiv-demo"},
		{"marked by a folder of that name", func(dir string) error { return os.MkdirAll(filepath.Join(dir, marker), 0o755) }, "is not empty and has no file aiv-demo"},
		{"a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a folder"},
		{"a link", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"-target", 0o755), os.Symlink(dir+"-target", dir))
		}, "is not a folder"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(base, "demo")
			if err := test.prepare(dir); err != nil {
				t.Fatal(err)
			}
			before := files(t, base)
			data, release, err := PrepareFolder(dir)
			if test.reason == "" {
				if err != nil || data != filepath.Join(dir, "postgresql") {
					t.Fatalf("got %q, %v", data, err)
				}
				if _, _, err := PrepareFolder(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("another aiv demo uses %s;", dir)) {
					t.Errorf("the second start beside the first: %v", err)
				}
				release()
				if _, release, err = PrepareFolder(dir); err != nil {
					t.Fatalf("the second start: %v", err)
				}
				release()
				return
			}
			if want := dir + " " + test.reason + "; aiv demo uses only a folder that it made itself"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if diff := cmp.Diff(before, files(t, base)); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// TestFolderBehindLinkOfAnother: nothing is made in a folder that another account has chosen by a link. It needs root,
// as changing owners does.
func TestFolderBehindLinkOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return
	}
	base := t.TempDir()
	target, link := filepath.Join(base, "target"), filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(target, 0o755), os.Symlink(target, link), os.Lchown(link, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	before := files(t, base)
	_, _, err := PrepareFolder(filepath.Join(link, "demo"))
	if want := link + " is a symbolic link of user 12345"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if diff := cmp.Diff(before, files(t, base)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
}

func files(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		found = append(found, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
