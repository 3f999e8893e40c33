package storetest_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must = storetest.Must

// again returns a command that runs one test of a copy of this test program, which finds the value in copyEnv.
func again(test, value string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append(args, "-test.run=^"+test+"$")...)
	cmd.Env = append(os.Environ(), copyEnv+"="+value)
	return cmd
}

const copyEnv = "AIV_TEST_COPY"

func TestNothingOutlivesTheTests(t *testing.T) {
	for _, death := range []string{"panic", "interrupt", "kill", "exit"} {
		t.Run(death, func(t *testing.T) {
			t.Parallel()
			cmd := again("TestServerEndsWithItsTests", death)
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			dir, err := bufio.NewReader(stdout).ReadString('\n')
			must(t, err)
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
	death := os.Getenv(copyEnv)
	if death == "" {
		return // run by TestNothingOutlivesTheTests only
	}
	var dir string
	must(t, storetest.New(t).QueryRow(t.Context(), `SHOW data_directory`).Scan(&dir))
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

// TestParallelismIsADefault: the default of Main applies without -parallel only.
func TestParallelismIsADefault(t *testing.T) {
	if os.Getenv(copyEnv) != "" {
		fmt.Println(flag.Lookup("test.parallel").Value)
		return
	}
	for argument, want := range map[string]int{"-test.v=false": min(8, 4*runtime.GOMAXPROCS(0)), "-test.parallel=7": 7} {
		out, err := again("TestParallelismIsADefault", "print", argument).Output()
		must(t, err)
		if got, _, _ := strings.Cut(string(out), "\n"); got != fmt.Sprint(want) {
			t.Errorf("%s: -parallel is %s, want %d", argument, got, want)
		}
	}
}

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		pool := storetest.New(t)
		var database string
		var migrations int
		const sql = `SELECT current_database(), (SELECT count(*) FROM schema_migrations)`
		must(t, pool.QueryRow(t.Context(), sql).Scan(&database, &migrations))
		if migrations == 0 || seen[database] {
			t.Errorf("database %s has %d migrations, and is that of another test: %v", database, migrations, seen[database])
		}
		seen[database] = true
	}
}
