package storetest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// parallelEnv makes TestParallelismIsADefault print, in a copy of this test program.
const parallelEnv = "AIV_TEST_PARALLEL"

// TestParallelismIsADefault: the default of Main applies without -parallel only.
func TestParallelismIsADefault(t *testing.T) {
	if os.Getenv(parallelEnv) != "" {
		fmt.Println(flag.Lookup("test.parallel").Value)
		return
	}
	for _, test := range []struct {
		args []string
		want int
	}{
		{nil, min(8, 4*runtime.GOMAXPROCS(0))},
		{[]string{"-test.parallel=7"}, 7},
	} {
		cmd := exec.Command(os.Args[0], append(test.args, "-test.run=^TestParallelismIsADefault$")...)
		cmd.Env = append(os.Environ(), parallelEnv+"=print")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", test.args, err)
		}
		if got, want := strings.SplitN(string(out), "\n", 2)[0], fmt.Sprint(test.want); got != want {
			t.Errorf("%v: -parallel is %s, want %s", test.args, got, want)
		}
	}
}
