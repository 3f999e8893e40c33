package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Input opens a file that a command reads. "-" is stdin. The opening and each read end when ctx ends.
func (c *Call) Input(ctx context.Context, name string) (io.ReadCloser, error) {
	// The caller reads from a pipe, which can be closed at any time. A read of the file itself cannot be interrupted.
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	opened := make(chan error, 1)
	go func() { // outlives ctx, because a terminal and a named pipe cannot be interrupted
		from := io.NopCloser(c.Stdin)
		var err error
		if name != "-" {
			from, err = os.Open(name)
		}
		// opened has a buffer, so that this does not block if ctx has ended.
		if opened <- err; err != nil {
			return
		}
		defer from.Close()
		_, err = io.Copy(w, from)
		w.CloseWithError(err)
	}()
	select {
	case err := <-opened:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r, nil
}

// ReplaceFile creates or replaces a file with what write writes, completely or not at all. A file that is not regular,
// such as /dev/stdout, is written to directly, because replacing it would damage the system. A replaced file keeps its
// permissions.
func ReplaceFile(name string, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // replaces the file, not the link to it
	}
	mode := fs.FileMode(0o666) // before the umask
	var replaced fs.FileInfo
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		// A device or a pipe needs neither O_CREATE nor O_TRUNC.
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	default:
		// Until the mode is set below, nobody else may read what the old file protected.
		replaced, mode = info, 0o600
	}
	// The new file is in the same folder, because a rename cannot cross file systems.
	partial := name + "." + rand.Text() // unique among concurrent and interrupted exports
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("create a file beside %s: %w", name, errors.Unwrap(err))
	}
	err = write(file)
	if err == nil && replaced != nil {
		err = setMode(file, replaced.Mode().Perm())
	}
	if err == nil {
		err = file.Sync() // or a power failure could leave an empty file under the name
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(partial, name) // fails for a mount point, such as a file of the host in a container
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return nil
}

// setMode changes the permissions of a file if they differ. Some file systems have the same for all files, and allow no
// change.
func setMode(file *os.File, mode fs.FileMode) error {
	info, err := file.Stat()
	if err != nil || info.Mode().Perm() == mode {
		return err
	}
	return file.Chmod(mode)
}
