package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// binary is the program under test, which TestMain builds.
var binary string

func TestMain(m *testing.M) { storetest.Main(runner{m}) }

// A runner builds the program, once for all tests, and runs them.
type runner struct{ m *testing.M }

// Run implements the part of testing.M that storetest.Main calls.
func (r runner) Run() int {
	dir, err := os.MkdirTemp("", "aiv-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the account of the private PostgreSQL executes the binary, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "aiv")
	args := []string{"build", "-ldflags=-s", "-o", binary} // as released; without debug information it takes half the time to link
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "aiv/cmd/aiv")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build aiv: %v\n%s", err, out)
		return 1
	}
	if signal.Ignored(syscall.SIGHUP) { // as by nohup: the processes that tests start would inherit it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	return r.m.Run()
}
