package storetest_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// deathEnv makes TestServerEndsWithItsTests die, in a copy of this test program.
const deathEnv = "AIV_TEST_DEATH"

func TestNothingOutlivesTheTests(t *testing.T) {
	for _, death := range []string{"panic", "interrupt", "kill", "exit"} {
		t.Run(death, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsTests$")
			cmd.Env = append(os.Environ(), deathEnv+"="+death)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			says := bufio.NewReader(stdout)
			dir, err := says.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			dir = strings.TrimSuffix(strings.TrimSpace(dir), "/pg")
			if cmd.Wait() == nil {
				t.Error("the test process did not die")
			}
			// The supervisor removes the folder last, when the server is gone.
			storetest.Eventually(t, dir+" is removed", func() bool {
				_, err := os.Stat(dir)
				return os.IsNotExist(err)
			})
		})
	}
}

func TestServerEndsWithItsTests(t *testing.T) {
	death := os.Getenv(deathEnv)
	if death == "" {
		return // run by TestNothingOutlivesTheTests only
	}
	var dir string
	if err := storetest.New(t).QueryRow(t.Context(), `SHOW data_directory`).Scan(&dir); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(dir + "\n")
	switch death {
	case "panic":
		panic("as the test wants")
	case "exit":
		os.Exit(3)
	case "interrupt":
		syscall.Kill(os.Getpid(), syscall.SIGINT)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	select {} // until the signal is there
}
