package e2e

import (
	"fmt"
	"net/http"
	"os"
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
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV} {
		cmd := crashing(t, "serve", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0")
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
		p.cmd.Process.Signal(signal)
		p.wait()
		clients.Wait()
		checkRemains(t, cmd, p.log, key.Key[len("aiv_live_")+8:])
	}
}

// TestEngineCore is TestFaultCore for a worker with a request in flight, which has started no process that could have
// its key.
func TestEngineCore(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	order(t, serve, key.Key, "core")
	fake := enginestest.New(t, "openai")
	began := make(chan struct{}, 1)
	fake.Then(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	as := func(args ...string) *exec.Cmd { return crashing(t, args...) }
	w := startEngineAs(t, as, dispatch, newWorker(t, url).Token, "openai", fake.URL, enginestest.Key)
	<-began
	if children := childrenOf(t, w.cmd.Process.Pid); len(children) > 0 {
		t.Errorf("aiv work has started processes:\n%s", strings.Join(children, "\n"))
	}
	w.cmd.Process.Signal(syscall.SIGABRT)
	<-w.ended
	checkRemains(t, w.cmd, w.log, enginestest.Key)
}

// crashing returns a command of aiv that may leave a core file, and whose runtime is asked for one.
func crashing(t *testing.T, args ...string) *exec.Cmd {
	const script = `ulimit -S -c "$(ulimit -H -c)" && GOTRACEBACK=crash exec "$0" "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, binary}, args...)...)
	cmd.Dir = t.TempDir()
	return cmd
}

// checkRemains checks what a process that has crashed leaves.
func checkRemains(t *testing.T, cmd *exec.Cmd, log *logBuffer, secret string) {
	t.Helper()
	if !strings.Contains(log.String(), "goroutine ") {
		t.Errorf("the output lists no goroutines:\n%s", log.end())
	}
	if strings.Contains(log.String(), secret) {
		t.Error("the output contains the key")
	}
	if left, _ := filepath.Glob(filepath.Join(cmd.Dir, "*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// childrenOf returns the lines of proc_pid_stat(5) of a process's children.
func childrenOf(t *testing.T, pid int) (children []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatalf("/proc lists %d processes (%v)", len(stats), err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name stands in parentheses, and may contain some. The state and the parent follow.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			children = append(children, string(stat))
		}
	}
	return children
}
