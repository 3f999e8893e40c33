package main

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile makes or replaces a file by what write writes, all of it or nothing. What is no ordinary file, such as
// /dev/stdout, is written to as it is: to replace it would break the machine.
func replaceFile(name string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // the file is replaced, not the link to it
	}
	mode := os.FileMode(0o666) // the umask takes its part
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	default:
		mode = info.Mode().Perm()
	}
	partial := name + "." + rand.Text() // neither what a killed export left nor another one's
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return os.Rename(partial, name)
}
