package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// This file keeps other accounts from redirecting what the private server's processes write. It matters most for root,
// whose writes no permission stops: a link in a folder of another account would make root overwrite any file.

// maxLinks is how many symbolic links a path may lead through, as on Linux.
const maxLinks = 40

// Resolve returns the real path of dir, whose last elements need not exist. It reports an error if another account
// decides where the path leads: if it owns one of the symbolic links or, for root, could replace a link or a folder.
func Resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(dir) { // the supervisor gets the path as JSON
		return "", fmt.Errorf("the path %q is not valid UTF-8", dir)
	}
	links := 0
	if dir, err = resolve(dir, &links); err != nil {
		return "", err
	}
	return dir, checkAncestors(dir)
}

// resolve resolves one element after the other from the top, so that each link is found in a folder whose real path is
// known.
func resolve(dir string, links *int) (string, error) {
	// The path may be the target of a link, which filepath.Dir would shorten: x/.. is another folder if x is a link.
	parent, name := filepath.Split(strings.TrimRight(dir, string(filepath.Separator)))
	if name == "" {
		return string(filepath.Separator), nil
	}
	parent, err := resolve(parent, links)
	if err != nil {
		return "", err
	}
	path := filepath.Join(parent, name) // name may be . or ..
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case info.Mode().Type() != fs.ModeSymlink:
		return path, nil
	}
	if *links++; *links > maxLinks {
		return "", fmt.Errorf("%s leads through more than %d symbolic links", path, maxLinks)
	}
	if err := checkLink(path, info); err != nil {
		return "", err
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(target) {
		target = parent + string(filepath.Separator) + target
	}
	if target, err = resolve(target, links); err != nil {
		return "", err
	}
	if !exists(target) {
		return "", fmt.Errorf("%s is a symbolic link to a file that does not exist", path)
	}
	return target, nil
}

// checkLink reports an error if another account owns a link or, for root, could replace it.
func checkLink(path string, info fs.FileInfo) error {
	if owner := ownerOf(info); owner != 0 && owner != uint32(os.Geteuid()) {
		return fmt.Errorf("%s is a symbolic link of user %d, which could lead it elsewhere; "+
			"choose the folder that it leads to, or another one", path, owner)
	}
	if err := checkAncestors(path); err != nil {
		return fmt.Errorf("%s is a symbolic link that is not safe: %w", path, err)
	}
	return nil
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
		return fmt.Errorf("%s belongs to user %d, which could replace %s; run aiv as that user or choose another folder",
			parent, ownerOf(info), dir)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("other users may write to %s (mode %03o) and could replace %s; choose another folder",
			parent, info.Mode().Perm(), dir)
	}
	return nil
}

// checkOwners reports an error if an entry of the folder that the private server uses is a link or belongs to another
// account. Folders may belong to the server's account, which writes them.
func checkOwners(root *os.Root, entries []os.DirEntry, runAs *osUser) error {
	for _, entry := range entries {
		name := entry.Name()
		var folder, link bool
		switch {
		case name == "pg", name == "log", strings.HasPrefix(name, "pg.partial-"):
			folder = true
		case name == "socket":
			folder, link = true, true
		case name == lastingMarker, name == ephemeralMarker, name == "supervisor.log", isLock(name):
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
			return fmt.Errorf("%s belongs to user %d; remove it or choose another folder", path, owner)
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
		err = fmt.Errorf("%s is not a file of the server's user", filepath.Join(dir, name))
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
