package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

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
		clients.Go(func() {
			for { // until the process has ended
				if _, err := p.do(t.Context(), "POST", "", key.Key, "core", testRun); err != nil {
					return
				}
				answered.Add(1)
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
	if left, _ := filepath.Glob(filepath.Join(p.cmd.Dir, "*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
