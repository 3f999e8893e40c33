package private

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// initialize creates the data folder if there is none. It is created under another name and renamed when complete, so
// that an interrupted one is never used.
func initialize(j job) error {
	if err := makeServerDir(j, serverLogDir(j.Dir)); err != nil {
		return err
	}
	leftovers, _ := filepath.Glob(filepath.Join(j.Dir, "pg.partial-*"))
	for _, leftover := range leftovers {
		os.RemoveAll(leftover) // a failure only wastes disk space
	}
	if _, err := os.Stat(dataDir(j.Dir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	partial, err := os.MkdirTemp(j.Dir, "pg.partial-")
	if err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	if err := giveTo(j.RunAs, partial); err != nil {
		return err
	}
	fill := initdb
	if j.Archive != "" {
		fill = unpack
	}
	if err := fill(j, partial); err != nil {
		return err
	}
	if err := os.Rename(partial, dataDir(j.Dir)); err != nil {
		return fmt.Errorf("move the data folder into place: %w", err)
	}
	if j.Ephemeral {
		return nil
	}
	return syncDir(j.Dir)
}

// initdb creates a cluster and its database in an empty folder. With locale C the order of text is the same on every
// machine and does not change with a library.
func initdb(j job, into string) error {
	args := []string{"-D", into, "--username=aiv", "--encoding=UTF8", "--locale=C", "--auth=trust", "--no-instructions", "--data-checksums"}
	single := []string{"--single", "-D", into}
	if j.Ephemeral {
		args = append(args, "--no-sync")
		single = append(single, "-c", "fsync=off")
	}
	run := serverCommand(j, "initdb", args...)
	dieWithParent(run.SysProcAttr, syscall.SIGKILL)
	if err := run.Run(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	// Without a server, so that a renamed data folder always has the database.
	run = serverCommand(j, "postgres", append(single, "postgres")...)
	run.Stdin = strings.NewReader("CREATE DATABASE aiv;\n")
	dieWithParent(run.SysProcAttr, syscall.SIGKILL)
	if err := run.Run(); err != nil {
		return fmt.Errorf("create database aiv: %w", err)
	}
	return nil
}

// unpack fills an empty folder from the archive. The server's account need not be able to open it.
func unpack(j job, into string) error {
	archive, err := os.Open(j.Archive)
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	defer archive.Close()
	run := commandOfServer(j, "tar", "-x", "-C", into)
	run.Stdin = archive
	dieWithParent(run.SysProcAttr, syscall.SIGKILL)
	if err := run.Run(); err != nil {
		return fmt.Errorf("unpack %s: %w", j.Archive, err)
	}
	return nil
}

// makeServerDir creates a folder that only the server's account can enter.
func makeServerDir(j job, path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make a folder for the server: %w", err)
	}
	return giveTo(j.RunAs, path)
}

func giveTo(owner *osUser, path string) error {
	if owner == nil {
		return nil
	}
	if err := os.Lchown(path, int(owner.UID), int(owner.GID)); err != nil {
		return fmt.Errorf("give the folder to the server's user: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// dataMajor returns the major version that created the data folder, 0 if there is none yet.
func dataMajor(dir string) (int, error) {
	f, err := openServerFile(dataDir(dir), "PG_VERSION")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, 100))
	}
	var major int
	if err == nil {
		major, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return 0, fmt.Errorf("read the version in %s: %w", filepath.Join(dataDir(dir), "PG_VERSION"), err)
	}
	return major, nil
}
