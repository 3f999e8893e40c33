package e2e

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store/storetest"
)

// TestFewDescriptors: one address opens more connections than the process may have descriptors, and sends nothing.
// Clients of other addresses are served, and the admin listener and the database are reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	args := append([]string{"-c", `ulimit -n 128 && exec "$0" "$@"`, binary}, onFreePorts("serve")...)
	p := start(t, storetest.URL(t), exec.Command("sh", args...))
	// Connections to a database whose machine is lost end after 15 s, with unacknowledged data (18: TCP_USER_TIMEOUT) or
	// without.
	conn, err := open(t, storetest.URL(t)).Config().ConnConfig.DialFunc(t.Context(), "tcp", p.host())
	must(t, err)
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		for name, want := range map[int]int{18: 15_000, syscall.TCP_KEEPIDLE: 3, syscall.TCP_KEEPINTVL: 3, syscall.TCP_KEEPCNT: 4} {
			if got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name); got != want || err != nil {
				t.Errorf("option %d is %d, want %d", name, got, want)
			}
		}
	}))
	p.connect(t, "127.0.0.1", 140, "")
	other := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dialerFrom("127.0.0.2").DialContext}}
	for _, address := range []string{p.admin + "/livez", p.admin + "/readyz", "http://" + p.host() + gateway.Base + "/docs"} {
		storetest.Eventually(t, address+" is served", func() bool { // /readyz waits for the database for two seconds
			w, err := other.Get(address)
			must(t, err)
			w.Body.Close()
			return w.StatusCode < 500
		})
	}
	stops(t, p)
}

// TestLogIsNotRead: a process whose log is not read serves, also after SIGHUP and when the reader has gone, and ends after
// SIGTERM within -drain, even when it has an error to report.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	log, stderr, err := os.Pipe()
	must(t, err)
	defer log.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, log.Fd(), syscall.F_SETPIPE_SZ, 4096); errno != 0 { // a dozen lines
		t.Fatal(errno)
	}
	cmd := exec.Command(binary, onFreePorts("serve", "-drain", "1s", "-database-url", url)...)
	cmd.Stderr = stderr
	p := launch(t, cmd)
	stderr.Close()
	if !p.readServing(log) {
		t.Fatal("the log ends before the process serves")
	}
	p.cmd.Process.Signal(syscall.SIGHUP)
	for lines := bufio.NewScanner(log); !strings.Contains(lines.Text(), "SIGHUP ignored"); {
		if !lines.Scan() {
			t.Fatalf("the log ends: %v", lines.Err())
		}
	}
	for n := range 250 {
		if n == 200 {
			log.Close()
		}
		p.serves(t, key.Key)
	}
	// This request takes longer than -drain. The server has asked for its body.
	cutOff := p.connect(t, "127.0.0.1", 1, "POST "+gateway.Base+" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+key.Key+"\r\n"+
		"Content-Type: application/json\r\nIdempotency-Key: cut-off\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	must(t, storetest.Ignore(cutOff[0].Read(make([]byte, 1))))
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err = p.wait(); p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("aiv serve ended with %v, want exit status 1, since a request was cut off", err)
	}
}

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
		if err := os.WriteFile(filler, make([]byte, 24<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		l.suffer(10 * time.Second)
		must(t, os.Remove(filler))
		c.Start(t) // it may have ended, or be about to
		l.recovered(t)
	}
	l.end()
	l.check("disk full")
	l.survived(t, bounded)
}

// TestFaultCore: a process crashes under load although core files are allowed and GOTRACEBACK asks for one. Its last
// output lists every goroutine and contains no key, and it leaves no core file, because its memory contains keys.
func TestFaultCore(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	const script = `ulimit -S -c "$(ulimit -H -c)" && GOTRACEBACK=crash exec "$0" "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, binary}, onFreePorts("serve")...)...)
	cmd.Dir = t.TempDir()
	p := start(t, url, cmd)
	var clients sync.WaitGroup
	var answered atomic.Int64
	for range 4 {
		clients.Go(func() { // until the process has ended
			for err := error(nil); err == nil; answered.Add(1) {
				_, err = p.do(t.Context(), "POST", "", key.Key, "core", testRun)
			}
		})
	}
	storetest.Eventually(t, "20 responses", func() bool { return answered.Load() >= 20 })
	p.cmd.Process.Signal(syscall.SIGABRT)
	p.wait()
	clients.Wait()
	if log := p.log.String(); !strings.Contains(log, "goroutine ") || strings.Contains(log, key.Key[len("aiv_live_")+8:]) {
		t.Errorf("the output lists no goroutines, or contains the key: %s", tail(log))
	}
	left, err := filepath.Glob(filepath.Join(p.cmd.Dir, "*"))
	must(t, err)
	storetest.Equal(t, 0, len(left), "core files")
}
