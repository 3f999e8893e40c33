package storetest

import (
	"flag"
	"fmt"
	"os"
)

// Main parses the flag, so that every test process that may run fault tests has it.
var faults = flag.String("faults", "short", "run the tests named Fault for `LONG`: short (seconds) or long (minutes)")

// Long reports whether the fault tests are to run for minutes.
func Long() bool { return *faults == "long" }

func parseFlags() {
	flag.Parse()
	if *faults != "short" && *faults != "long" {
		fmt.Fprintf(os.Stderr, "-faults must be short or long, not %q\n", *faults)
		os.Exit(2)
	}
}
