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
	l.begin(byForm(4, 8))
	l.recovered(t)
	for range byForm(1, 5) {
		filler := filepath.Join(disk, "filler")
		f, err := os.Create(filler)
		must(t, err)
		for err == nil { // until the disk is full
			_, err = f.Write(make([]byte, 4096))
		}
		f.Close()
		l.suffer(10 * time.Second)
		must(t, os.Remove(filler))
		c.Start(t) // it may have ended, or be about to
		l.recovered(t)
	}
	l.end()
	l.check("disk full")
	l.survived(t, bounded)
}
