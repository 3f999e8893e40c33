package storetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"aiv/store/private"
)

// serverUser is the user that servers run as, nil for the user of this process. It is looked up once.
var serverUser = sync.OnceValues(func() (*syscall.Credential, error) { return private.ServerUser("") })

// chownToServer gives folders to the user that the server runs as.
func chownToServer(dirs ...string) error {
	owner, err := serverUser()
	if owner == nil {
		return err
	}
	for _, dir := range dirs {
		err = errors.Join(err, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	return err
}

// ours reports whether a file belongs to this user or to the one that the server runs as.
func ours(info os.FileInfo) bool {
	owner := info.Sys().(*syscall.Stat_t).Uid
	server, err := serverUser()
	return owner == uint32(os.Geteuid()) || err == nil && server != nil && owner == server.Uid
}

// Unpack fills an empty folder, and gives it to the server's user, who may not be able to open the archive.
func Unpack(dir string) error {
	path, err := Archive()
	if err != nil {
		return err
	}
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	owner, err := serverUser()
	if err != nil {
		return err
	}
	if err := chownToServer(dir); err != nil {
		return err
	}
	// tar reads the archive from standard input, as the server's user may not be able to open it.
	tar := exec.Command("tar", "-x", "-C", dir)
	tar.Stdin, tar.SysProcAttr = archive, &syscall.SysProcAttr{Credential: owner}
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", path, err, out)
	}
	return nil
}

// Command returns one of PostgreSQL's installed programs, which runs as the user of a server.
func Command(name string, args ...string) (*exec.Cmd, error) {
	binaries, err := installed()
	if err != nil {
		return nil, err
	}
	owner, err := serverUser()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(binaries, name), args...)
	// The server's user may not be able to enter the present folder.
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = "/", os.Stderr, &syscall.SysProcAttr{Credential: owner}
	return cmd, nil
}

// installed finds the programs once, because that takes several processes.
var installed = sync.OnceValues(private.Binaries)

// clusterPrefix begins the names of the folders of clusters, by which removeAbandoned finds them.
const clusterPrefix = "aiv-server-"

// lockDir locks a folder, unless another process has it locked.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeAbandoned removes the folders of test processes that were killed. Their servers have ended: the kernel ends them
// or, on other systems than Linux, PostgreSQL itself when its folder is gone. A new folder is perhaps not locked yet.
var removeAbandoned = sync.OnceFunc(func() {
	for _, parent := range []string{memory, os.TempDir()} {
		dirs, _ := filepath.Glob(filepath.Join(parent, clusterPrefix+"*")) // the pattern is valid
		for _, dir := range dirs {
			info, err := os.Lstat(dir)
			if err != nil || !info.IsDir() || !ours(info) || time.Since(info.ModTime()) < time.Minute {
				continue
			}
			// A folder that can be locked belongs to no process that runs.
			if f, err := lockDir(dir); err == nil {
				(&Cluster{Dir: dir}).remove()
				f.Close()
			}
		}
	}
})

// memory is a folder in memory on Linux. Creating the files of a database takes a tenth of the time there.
const memory = "/dev/shm"

// memoryFree is the least space that must be free in memory: the databases of all packages that are tested at a time
// fit into it.
const memoryFree = 4 << 30

// MkdirTemp creates a new folder for a server that need not survive a power failure.
func MkdirTemp(pattern string) (string, error) {
	var free syscall.Statfs_t
	if err := syscall.Statfs(memory, &free); err == nil && free.Bavail*uint64(free.Bsize) >= memoryFree {
		if dir, err := os.MkdirTemp(memory, pattern); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", pattern)
}
