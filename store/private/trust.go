package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// This file keeps other accounts from redirecting what the private server's processes write. It matters most for root, whose
// writes no permission stops: a link in a folder of another account would make root overwrite any file.

// resolve returns the real path of dir, whose last elements need not exist.
func resolve(dir string) (string, error) {
	path, err := filepath.EvalSymlinks(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if info, err := os.Lstat(dir); err == nil {
		if info.Mode()&fs.ModeSymlink == 0 { // another process has created it in between
			return resolve(dir)
		}
		return "", fmt.Errorf("%s is a symbolic link to a file that does not exist", dir)
	}
	parent, err := resolve(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(dir)), nil
}

// checkAncestors reports an error if root is to use a folder that another account could replace by renaming one of its
// parents. The parents are checked from the top: once one is known to be safe, no other account can exchange the next.
func checkAncestors(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return nil
	}
	if err := checkAncestors(parent); err != nil {
		return err
	}
	info, err := os.Lstat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", parent)
	case ownerOf(info) != 0:
		return fmt.Errorf("%s belongs to account %d, which could replace %s; run aiv as that account or choose another folder",
			parent, ownerOf(info), dir)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("other accounts may write to %s (mode %03o) and could replace %s; choose another folder",
			parent, info.Mode().Perm(), dir)
	}
	return nil
}

// checkOwners reports an error if an entry of the folder that the private server uses is a link or belongs to another
// account. Folders may belong to the server's account, which writes them.
func checkOwners(root *os.Root, entries []os.DirEntry, runAs *account) error {
	for _, entry := range entries {
		name := entry.Name()
		var folder, link bool
		switch {
		case name == "pg", name == "log", strings.HasPrefix(name, "pg.partial-"):
			folder = true
		case name == "socket":
			folder, link = true, true
		case name == lastingMarker, name == ephemeralMarker, name == "users.lock", name == "supervisor.lock", name == "supervisor.log":
		default:
			continue // never opened
		}
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process of this account
		}
		if err != nil {
			return err
		}
		path, owner := filepath.Join(root.Name(), name), ownerOf(info)
		ours := owner == uint32(os.Geteuid())
		switch {
		case link && info.Mode().Type() == os.ModeSymlink && ours:
		case folder && info.IsDir() && (ours || runAs != nil && owner == runAs.UID):
		case !folder && info.Mode().IsRegular() && ours && linksOf(info) == 1:
		case !ours:
			return fmt.Errorf("%s belongs to account %d; remove it or choose another folder", path, owner)
		default:
			return fmt.Errorf("%s is not a file that aiv made (%v); remove it or choose another folder", path, info.Mode())
		}
	}
	return nil
}

// openServerFile opens a file in a folder of the server's account for reading. That account could have put a link to a
// file of root there, whose content would appear in an error, or a pipe.
func openServerFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	of, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || ownerOf(info) != ownerOf(of)) {
		err = fmt.Errorf("%s is not a file of the server's account", filepath.Join(dir, name))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func ownerOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
func groupOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Gid }
func linksOf(info os.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
