package private_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/store/private"
)

// TestFoldersAreRefused: a folder is refused, and nothing in it is changed, if it is another program's, or if another
// account, 12345, could decide what is written. Only root can make the cases of other accounts.
func TestFoldersAreRefused(t *testing.T) {
	t.Parallel()
	const mark, isRoot, anyone = "touch aiv-private-postgresql; ", true, false
	elsewhere := folder(t)
	for _, test := range []struct {
		name   string
		root   bool
		script string // makes the folder DIR
		sub    string // of it; empty: the folder itself
		want   string
	}{
		{"another program's folder", anyone, "touch thesis.txt", "",
			"DIR is not empty and not a folder of aiv (it has thesis.txt)"},
		{"the parent of a private server's folder", anyone, "mkdir sub; touch sub/aiv-private-postgresql", "",
			"DIR is not a folder of aiv, but DIR/sub is; choose that one"},
		{"a parent that only root can enter", isRoot, "chmod 700 .; mkdir data", "data", "cannot enter DIR"},
		{"a marked folder of another account", isRoot, mark + "chown 12345 .", "", "DIR belongs to user 12345"},
		{"a folder inside one of another account", isRoot, "chown 12345 .", "data",
			"DIR belongs to user 12345, which could replace DIR/data"},
		{"a folder inside one that all accounts may write to", isRoot, "chmod 777 .", "data",
			"other users may write to DIR (mode 777)"},
		{"a marked folder that all accounts may write to", anyone, mark + "chmod 777 .", "",
			"other users may write to DIR (mode 777), so its files may be theirs"},
		{"a link to a missing folder", anyone, "ln -s gone data", "data",
			"DIR/data is a symbolic link that leads to no file"},
		{"a link of another account", isRoot, "mkdir target; ln -s target data; chown -h 12345 data", "data",
			"DIR/data is a symbolic link of user 12345, which could lead it elsewhere; choose the folder that it leads to"},
		{"a link in a folder of another account", isRoot, "ln -s ELSEWHERE data; chown 12345 .", "data",
			"DIR belongs to user 12345, which could replace DIR/data"},
		{"a link in a folder that all accounts may write to", isRoot, "ln -s ELSEWHERE data; chmod 777 .", "data",
			"other users may write to DIR (mode 777)"},
		{"a link that another link leads to, in a folder of another account", isRoot,
			"mkdir theirs; ln -s ELSEWHERE theirs/next; ln -s theirs/next data; chown 12345 theirs", "data",
			"DIR/theirs belongs to user 12345, which could replace DIR/theirs/next"},
		{"a link to itself", anyone, "ln -s data data", "data", "DIR/data is a symbolic link that leads to no file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				return
			}
			dir := made(t, strings.ReplaceAll(test.script, "ELSEWHERE", elsewhere))
			before := listing(t, dir)
			got := refused(t, filepath.Join(dir, test.sub))
			if want := strings.ReplaceAll(test.want, "DIR", dir); !strings.Contains(got, want) {
				t.Errorf("got %s\nwant ... %s", got, want)
			}
			equal(t, before, listing(t, dir), "the folder was changed")
		})
	}
}

// TestLinksInTheFolderAreRefused: nothing outside the folder is read or changed.
func TestLinksInTheFolderAreRefused(t *testing.T) {
	t.Parallel()
	elsewhere := made(t, `echo hidden >secret; mkdir empty; chmod 700 empty`)
	before := listing(t, elsewhere)
	for _, test := range []struct{ script, want string }{
		{"ln -s ELSEWHERE/secret server.lock", "server.lock: too many levels of symbolic links"},
		{"ln -s ELSEWHERE/gone server.lock", "server.lock: too many levels of symbolic links"},
		{"ln -s ELSEWHERE/empty socket", "DIR/socket is not a private folder"},
		{"ln -s ELSEWHERE/empty log", "DIR/log is not a private folder"},
		{"ln -s ELSEWHERE/empty pg", "DIR/pg is not a private folder"},
		{"mkdir -m 700 pg; ln -s ELSEWHERE/secret pg/PG_VERSION" + ofServer("pg"), "DIR/pg/PG_VERSION contains no version of PostgreSQL"},
	} {
		dir := made(t, "touch aiv-private-postgresql; "+strings.ReplaceAll(test.script, "ELSEWHERE", elsewhere))
		got := refused(t, dir)
		if want := strings.ReplaceAll(test.want, "DIR", dir); !strings.Contains(got, want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: got %s\nwant ... %s, and no text of another file", test.script, got, want)
		}
	}
	equal(t, before, listing(t, elsewhere), "the other folder was changed")
}

// listing describes a folder and each file below it. Of a marked folder it leaves out the folder itself, which gets the
// mode of a private server's and, with its files, the owner.
func listing(t *testing.T, dir string) (files []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		marked := !isGone(filepath.Join(dir, "aiv-private-postgresql"))
		switch {
		case err != nil:
		case !marked:
			files = append(files, fmt.Sprint(path, info.Mode(), info.Sys().(*syscall.Stat_t).Uid, info.Size(), info.ModTime()))
		case path != dir:
			files = append(files, fmt.Sprint(path, info.Mode(), info.Size(), info.ModTime()))
		}
		return err
	}))
	return files
}

// TestSafeLinksAreFollowed: links that no other account can change are followed, as the kernel does.
func TestSafeLinksAreFollowed(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(made(t, `mkdir -p a/b sticky; chmod 1777 sticky
		ln -s "$PWD/a" absolute; ln -s a/b relative; ln -s relative/.. above; ln -s ../a sticky/own`))
	must(t, err)
	for from, want := range map[string]string{
		"a/b": "a/b", "missing/data": "missing/data", "absolute/missing/data": "a/missing/data",
		"relative": "a/b", "above": "a", "sticky/own/b": "a/b",
	} {
		got, err := private.Resolve(filepath.Join(dir, from))
		must(t, err)
		equal(t, filepath.Join(dir, want), got, from)
	}
}
