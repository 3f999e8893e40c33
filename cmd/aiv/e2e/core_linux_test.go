package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestFaultCore: a process crashes under load although core files are allowed and GOTRACEBACK asks for one. Its last
// output lists every goroutine and contains no key, and it leaves no core file, because its memory contains keys.
func TestFaultCore(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV} {
		dir := t.TempDir()
		cmd := exec.Command("/bin/sh", "-c", `ulimit -S -c "$(ulimit -H -c)" && GOTRACEBACK=crash exec "$0" "$@"`,
			binary, "serve", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0")
		cmd.Dir = dir
		p := start(t, url, cmd)
		var clients sync.WaitGroup
		answered := make(chan struct{}, 1000)
		for range 4 {
			clients.Go(func() {
				for {
					a, err := p.do(t.Context(), "POST", "", key.Key, "core", testRun)
					if err != nil {
						return // the process has ended
					}
					if a.status != 202 {
						t.Errorf("got %d %s", a.status, a.body)
					}
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 20 {
			<-answered
		}
		p.cmd.Process.Signal(signal)
		p.wait()
		clients.Wait()
		said := p.log.String()
		if !strings.Contains(said, "goroutine ") {
			t.Errorf("after %v the output lists no goroutines:\n%s", signal, p.log.end())
		}
		if secret := key.Key[len("aiv_live_")+8:]; strings.Contains(said, secret) {
			t.Errorf("after %v the output contains the key", signal)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("after %v it leaves %v", signal, left)
			core, _ := os.ReadFile(left[0])
			t.Errorf("it contains the key %d times", strings.Count(string(core), key.Key))
		}
	}
}
