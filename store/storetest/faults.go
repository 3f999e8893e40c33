package storetest

import (
	"flag"
	"fmt"
	"os"
)

// The flag stands here because every package with tests has this package's Main: `go test ./... -faults=long` tells it to
// all of them.
var faults = flag.String("faults", "short", "how `LONG` the tests named Fault go on: short (seconds) or long (minutes)")

// Long tells whether the fault tests are asked to go on for long.
func Long() bool { return *faults == "long" }

func checkFaults() {
	flag.Parse()
	if *faults != "short" && *faults != "long" {
		fmt.Fprintf(os.Stderr, "-faults must be short or long, not %q\n", *faults)
		os.Exit(2)
	}
}
