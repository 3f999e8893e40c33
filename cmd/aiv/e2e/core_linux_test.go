package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/store/storetest"
)

// TestFaultCore: a process crashes under load although core files are allowed and GOTRACEBACK asks for one. Its last
// output lists every goroutine and contains no key, and it leaves no core file, because its memory contains keys.
func TestFaultCore(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	p := start(t, url, crashing(t, onFreePorts("serve")...))
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
	p.crash(t, key.Key[len("aiv_live_")+8:])
	clients.Wait()
}

// TestEngineCore is TestFaultCore for a worker with a request in flight.
func TestEngineCore(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	serve.order(t, key.Key, "core")
	fake := enginestest.New(t, "openai")
	began := make(chan struct{}, 1)
	fake.Then(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	w := launch(t, crashing(t, engineArgs(t, dispatch, newWorker(t, url).Token, "openai", fake.URL, enginestest.Key)...))
	<-began
	w.crash(t, enginestest.Key)
}

// crashing returns a command of aiv that may leave a core file, and whose runtime is asked for one.
func crashing(t *testing.T, args ...string) *exec.Cmd {
	const script = `ulimit -S -c "$(ulimit -H -c)" && GOTRACEBACK=crash exec "$0" "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, binary}, args...)...)
	cmd.Dir = t.TempDir()
	return cmd
}

// crash makes the process crash, and checks what it leaves.
func (p *process) crash(t *testing.T, secret string) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGABRT)
	p.wait()
	if !strings.Contains(p.log.String(), "goroutine ") {
		t.Errorf("the output lists no goroutines:\n%s", p.log.end())
	}
	if strings.Contains(p.log.String(), secret) {
		t.Error("the output contains the key")
	}
	if left, _ := filepath.Glob(filepath.Join(p.cmd.Dir, "*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
