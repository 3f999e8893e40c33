package storetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must = storetest.Must

// deathEnv says how a copy of this test program ends.
const deathEnv = "AIV_TEST_DEATH"

// TestNoServerOutlivesItsTests: and the next test process removes its folder.
func TestNoServerOutlivesItsTests(t *testing.T) {
	var before string
	for _, death := range []string{"panic", "interrupt", "kill"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsTests$")
		cmd.Env = append(os.Environ(), deathEnv+"="+death)
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		var dir string
		var pid int
		_, err = fmt.Fscanln(stdout, &dir, &pid)
		must(t, err)
		if cmd.Wait() == nil {
			t.Error("the test process did not die")
		}
		storetest.Eventually(t, "the server has ended after "+death, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		if _, err := os.Stat(before); err == nil {
			t.Errorf("%s, of the process before, is still there", before)
		}
		must(t, os.Chtimes(dir, time.Time{}, time.Unix(0, 0))) // it is not just being made
		before = dir
	}
	must(t, os.RemoveAll(before))
}

func TestServerEndsWithItsTests(t *testing.T) {
	death := os.Getenv(deathEnv)
	if death == "" {
		return // run by TestNoServerOutlivesItsTests only
	}
	var data string
	must(t, storetest.New(t).QueryRow(t.Context(), `SHOW data_directory`).Scan(&data))
	pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	must(t, err)
	line, _, _ := strings.Cut(string(pid), "\n")
	fmt.Println(filepath.Dir(data), line)
	switch death {
	case "panic":
		panic("as the test wants")
	case "interrupt":
		syscall.Kill(os.Getpid(), syscall.SIGINT)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	select {} // until the signal is there
}
