package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestEngineCore: a worker with a request in flight has started no process that could have its key. It crashes although
// core files are allowed and GOTRACEBACK asks for one: its last output lists every goroutine and contains no key, and
// it leaves no core file.
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
	dir := t.TempDir()
	crashing := func(args ...string) *exec.Cmd {
		script := `ulimit -S -c "$(ulimit -H -c)" && GOTRACEBACK=crash exec "$0" "$@"`
		cmd := exec.Command("/bin/sh", append([]string{"-c", script, binary}, args...)...)
		cmd.Dir = dir
		return cmd
	}
	w := startEngineAs(t, crashing, dispatch, newWorker(t, url).Token, "openai", fake.URL, enginestest.Key)
	<-began
	if children := childrenOf(t, w.cmd.Process.Pid); len(children) > 0 {
		t.Errorf("aiv work has started processes:\n%s", strings.Join(children, "\n"))
	}
	w.cmd.Process.Signal(syscall.SIGABRT)
	<-w.ended
	said := w.log.String()
	if !strings.Contains(said, "goroutine ") {
		t.Errorf("the output lists no goroutines:\n%s", w.log.end())
	}
	if strings.Contains(said, enginestest.Key) {
		t.Error("the output contains the key")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
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
