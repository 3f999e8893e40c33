package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"aiv/store"
	"aiv/store/schema"
)

// Archive returns the path of a tar file of a server's data folder, which has the migrated database "aiv" and was shut
// down. Servers start from it because initdb and the migrations take ten times as long as to unpack it. The file is
// kept in the user's cache folder. Its name is a hash of what it depends on, so a change of the migrations or of
// PostgreSQL makes another one.
func Archive() (string, error) { return archive() }

// archive is package-level because all tests of a process share the file.
var archive = sync.OnceValues(func() (string, error) {
	name, err := archiveName()
	if err != nil {
		return "", err
	}
	dir, err := archiveDir()
	if err != nil {
		return "", err
	}
	// One process makes the archive, the others wait. The lock of a process that is killed ends with it.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	path := filepath.Join(dir, name)
	now := time.Now()
	if os.Chtimes(path, now, now) == nil { // there is one, and now it is known to be used
		return path, nil
	}
	removeOldArchives(dir)
	return path, makeArchive(path)
})

// archiveName returns the name of the archive of the installed PostgreSQL, the options of initdb and the migrations.
func archiveName() (string, error) {
	postgres, err := Command("postgres")
	if err != nil {
		return "", err
	}
	program, err := os.Stat(postgres.Path)
	if err != nil {
		return "", err
	}
	schema, err := schema.ID()
	if err != nil {
		return "", err
	}
	// The time and the size of the program tell installed versions of PostgreSQL apart.
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %v %d %q %q %s",
		postgres.Path, program.ModTime().UnixNano(), program.Size(), initdbOptions, archived, schema))
	return fmt.Sprintf("cluster-%x.tar", hash[:16]), nil
}

// initdbOptions make a small folder: small files of the log take little space.
var initdbOptions = []string{"--username=aiv", "--encoding=UTF8", "--locale=C", "--auth=trust", "--data-checksums", "--no-sync", "--wal-segsize=1"}

// archived are the settings of the server that is packed, which keeps little of its log.
var archived = []string{"min_wal_size=2MB", "max_wal_size=2MB", "wal_keep_size=0"}

// temporary is the folder of the archive if the user has no cache folder that can be written; removeTemporary removes it.
var temporary string

// archiveDir returns the folder of archives, which later test processes use again if the user has a cache folder.
func archiveDir() (string, error) {
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, "aiv-test")
		if err := os.MkdirAll(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	var err error
	temporary, err = MkdirTemp("aiv-archive-")
	return temporary, err
}

// removeTemporary removes the folder that archiveDir has made, if it is a temporary one.
func removeTemporary() {
	if temporary != "" {
		os.RemoveAll(temporary)
	}
}

// removeOldArchives removes what no test has used for a week.
func removeOldArchives(dir string) {
	entries, _ := os.ReadDir(dir) // an error: nothing is removed
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != "lock" && time.Since(info.ModTime()) > 7*24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// makeArchive creates a cluster, migrates it, stops it and packs its files. The archive is renamed when complete, so
// that an interrupted one is never used. The caller has the lock.
func makeArchive(path string) error {
	c, err := makeCluster(archived)
	if err != nil {
		return err
	}
	defer c.remove()
	defer c.Kill()
	initdb, err := Command("initdb", append([]string{"-D", c.Data()}, initdbOptions...)...)
	if err != nil {
		return err
	}
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := migrate(c); err != nil {
		return err
	}
	partial, err := os.OpenFile(path+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer partial.Close()
	tar := exec.Command("tar", "-c", "-C", c.Data(), ".")
	tar.Stdout, tar.Stderr = partial, os.Stderr
	if err := tar.Run(); err != nil {
		return fmt.Errorf("pack a cluster: %w", err)
	}
	// Without Sync, a crash of the machine could leave an incomplete file under the final name.
	if err := partial.Sync(); err != nil {
		return err
	}
	return os.Rename(partial.Name(), path)
}

// migrate starts a new cluster, creates its database, and stops it.
func migrate(c *Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return err
	}
	defer c.Stop()
	// A new cluster has no database for the program.
	if err := execSQL(ctx, named(c.URL(), "postgres"), "CREATE DATABASE aiv"); err != nil {
		return err
	}
	pool, err := store.Open(ctx, c.URL(), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := schema.Migrate(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
