package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultDiskFull fills the disk of PostgreSQL's write-ahead log, and frees it again.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	clients, times := byForm(4, 8), byForm(1, 5)
	c := storetest.NewCluster(t, "min_wal_size=2MB", "max_wal_size=12MB", "wal_keep_size=0")
	c.Stop()
	disk := filepath.Join(c.Dir, "disk")
	must(t, os.Mkdir(disk, 0o700))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=24m"); err != nil {
		t.Logf("not tried: a small file system needs root: mount: %v", err)
		return
	}
	t.Cleanup(func() {
		c.Kill()
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	log := filepath.Join(c.Data(), "pg_wal")
	// The folder that is mounted takes the owner and the mode of the one that it replaces.
	if out, err := exec.Command("cp", "-a", log+"/.", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.RemoveAll(log))
	must(t, os.Symlink(disk, log))
	c.Start(t)

	l := newLoad(t, c.URL(), 2)
	l.pause = 0 // fills what is left of the log soon
	l.begin(clients)
	l.recovered(t)
	var slowest time.Duration
	for range times {
		filler := filepath.Join(disk, "filler")
		fill(t, filler)
		l.suffer(10 * time.Second)
		must(t, os.Remove(filler))
		c.Start(t) // it may have ended, or be about to
		slowest = max(slowest, l.recovered(t))
	}
	l.end()
	l.check("disk full")
	l.survived(t, bounded)
	t.Logf("disk full: %d times, recovered within %v", times, slowest.Round(time.Millisecond))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}
