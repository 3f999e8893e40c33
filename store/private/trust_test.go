package private_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/private"

	"github.com/google/go-cmp/cmp"
)

const marker = "aiv-private-postgresql"

// other is an account that is neither this one nor the server's.
const other = 12345

// TestFoldersOfOthers checks that a folder is refused, and nothing in it changed, where another account could decide
// what is written. Cases with an owner need root, as changing owners does.
func TestFoldersOfOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		root bool
		make func(t *testing.T, dir, secret string)
		sub  string // of the folder made; empty: the folder itself
		want string
	}{
		{"an empty folder of another account", true, func(t *testing.T, dir, _ string) { chown(t, dir) }, "",
			"DIR belongs to user 12345; run aiv as that user"},
		{"a marked folder of another account", true, func(t *testing.T, dir, _ string) { write(t, dir, marker); chown(t, dir) }, "",
			"DIR belongs to user 12345"},
		{"a folder inside one of another account", true, func(t *testing.T, dir, _ string) { chown(t, dir) }, "data",
			"DIR belongs to user 12345, which could replace DIR/data"},
		{"a folder far inside one of another account", true, func(t *testing.T, dir, _ string) { chown(t, dir) }, "a/b/data",
			"DIR belongs to user 12345, which could replace DIR/a"},
		{"a folder inside one that all accounts may write to", true, func(t *testing.T, dir, _ string) { chmod(t, dir, 0o777) }, "data",
			"other users may write to DIR (mode 777)"},
		{"a marked folder that all accounts may write to", false, func(t *testing.T, dir, _ string) {
			write(t, dir, marker)
			chmod(t, dir, 0o777)
		}, "", "other users may write to DIR (mode 777), so its files may be theirs"},
		{"a link to a missing folder", false, func(t *testing.T, dir, _ string) { link(t, dir+"/gone", dir+"/data") }, "data",
			"DIR/data is a symbolic link to a file that does not exist"},
		{"a link of another account", true, func(t *testing.T, dir, _ string) {
			mkdir(t, dir+"/target")
			link(t, "target", dir+"/data")
			lchown(t, dir+"/data")
		}, "data", "DIR/data is a symbolic link of user 12345, which could lead it elsewhere; choose the folder that it leads to"},
		{"a link of another account in a sticky folder", true, func(t *testing.T, dir, _ string) {
			mkdir(t, dir+"/target")
			link(t, "target", dir+"/data")
			lchown(t, dir+"/data")
			chmod(t, dir, 0o777|os.ModeSticky)
		}, "data", "DIR/data is a symbolic link of user 12345"},
		{"a folder behind a link of another account", true, func(t *testing.T, dir, _ string) {
			mkdir(t, dir+"/target")
			link(t, "target", dir+"/way")
			lchown(t, dir+"/way")
		}, "way/data", "DIR/way is a symbolic link of user 12345"},
		{"a link in a folder of another account", true, func(t *testing.T, dir, _ string) {
			link(t, folder(t), dir+"/data")
			chown(t, dir)
		}, "data", "DIR/data is a symbolic link that is not safe: DIR belongs to user 12345, which could replace DIR/data"},
		{"a link in a folder that all accounts may write to", true, func(t *testing.T, dir, _ string) {
			link(t, folder(t), dir+"/data")
			chmod(t, dir, 0o777)
		}, "data", "DIR/data is a symbolic link that is not safe: other users may write to DIR (mode 777)"},
		{"a link that another link leads to, in a folder of another account", true, func(t *testing.T, dir, _ string) {
			mkdir(t, dir+"/theirs")
			link(t, folder(t), dir+"/theirs/next")
			link(t, "theirs/next", dir+"/data")
			chown(t, dir+"/theirs")
		}, "data", "DIR/theirs/next is a symbolic link that is not safe: DIR/theirs belongs to user 12345"},
		{"a link to itself", false, func(t *testing.T, dir, _ string) { link(t, "data", dir+"/data") }, "data",
			"DIR/data leads through more than 40 symbolic links"},
		{"a log that is a link", false, func(t *testing.T, dir, secret string) {
			write(t, dir, marker)
			link(t, secret, dir+"/supervisor.log")
		}, "", "DIR/supervisor.log is not a file that aiv made"},
		{"a lock that is a second name of another file", false, func(t *testing.T, dir, secret string) {
			write(t, dir, marker)
			if err := os.Link(secret, dir+"/users.lock"); err != nil {
				t.Fatal(err)
			}
		}, "", "DIR/users.lock is not a file that aiv made"},
		{"a lock of another account", true, func(t *testing.T, dir, _ string) {
			write(t, dir, marker)
			write(t, dir, "supervisor.lock")
			chown(t, dir+"/supervisor.lock")
		}, "", "DIR/supervisor.lock belongs to user 12345"},
		{"a marker that is a link", false, func(t *testing.T, dir, secret string) { link(t, secret, dir+"/"+marker) }, "",
			"DIR/" + marker + " is not a file that aiv made"},
		{"data that is a link", false, func(t *testing.T, dir, _ string) {
			write(t, dir, marker)
			link(t, t.TempDir(), dir+"/pg")
		}, "", "DIR/pg is not a file that aiv made"},
		{"data of another account", true, func(t *testing.T, dir, _ string) {
			write(t, dir, marker)
			mkdir(t, dir+"/data")
			chown(t, dir+"/data")
		}, "data", "DIR/data belongs to user 12345"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				return
			}
			dir := folder(t)
			secret := filepath.Join(folder(t), "secret")
			if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			test.make(t, dir, secret)
			before := listing(t, dir)
			_, err := private.Start(t.Context(), private.Config{Dir: filepath.Join(dir, test.sub)})
			if want := strings.ReplaceAll(test.want, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant ... %s", err, want)
			}
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("the folder was changed (-before +after):\n%s", diff)
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
				t.Errorf("the file outside the folder was changed: %q, %v", text, err)
			}
		})
	}
}

// TestSafeLinksAreFollowed: links that no other account can change are followed, as the kernel does.
func TestSafeLinksAreFollowed(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	mkdir(t, dir+"/a")
	mkdir(t, dir+"/a/b")
	mkdir(t, dir+"/sticky")
	chmod(t, dir+"/sticky", 0o777|os.ModeSticky)
	link(t, dir+"/a", dir+"/absolute")
	link(t, "a/b", dir+"/relative")
	link(t, "relative/..", dir+"/above")
	link(t, "./above/./b/", dir+"/several")
	link(t, "../a", dir+"/sticky/own")
	for from, want := range map[string]string{
		"a/b": "a/b", "missing": "missing", "missing/data": "missing/data",
		"absolute": "a", "absolute/b": "a/b", "absolute/missing/data": "a/missing/data",
		"relative": "a/b", "above": "a", "several": "a/b", "sticky/own/b": "a/b",
	} {
		got, err := private.Resolve(filepath.Join(dir, from))
		if want = filepath.Join(dir, want); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", from, got, err, want)
		}
	}
	if got, err := private.Resolve("/"); got != "/" || err != nil {
		t.Errorf("/: got %q, %v", got, err)
	}
}

// The server's account writes to its folders, so errors must not contain the text of files that it links to.
func TestLinksOfTheServersAccountAreNotRead(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(folder(t), "secret")
	if err := os.WriteFile(secret, []byte("hidden text"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := initialized(t)
	version := filepath.Join(config.Dir, "pg", "PG_VERSION")
	logs, err := filepath.Glob(filepath.Join(config.Dir, "log", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs of the server: %v, %v", logs, err)
	}
	for _, name := range append(logs, version) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		link(t, secret, name)
	}
	if _, err = private.Start(t.Context(), config); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a linked PG_VERSION: got %v", err)
	}
}

// listing describes each file below dir.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != dir {
			info, err := os.Lstat(path)
			if err != nil {
				return err
			}
			files = append(files, fmt.Sprint(path, info.Mode(), info.Size(), info.ModTime()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string) {
	t.Helper()
	if err := os.Chown(path, other, other); err != nil {
		t.Fatal(err)
	}
}

// lchown changes the owner of a link.
func lchown(t *testing.T, path string) {
	t.Helper()
	if err := os.Lchown(path, other, other); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
