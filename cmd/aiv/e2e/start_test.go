package e2e

import (
	"os/exec"
	"runtime"
	"sync"

	"aiv/store/storetest"
)

// starts are the commands that wait for starter.
var starts = make(chan func())

func init() { go starter() }

// starter starts all commands on one thread, which ends when the tests end.
func starter() {
	runtime.LockOSThread()
	for start := range starts {
		start()
	}
}

var readSources = sync.OnceValue(func() error { return storetest.ReadSources("../../..") })

// startCommand starts a command that does not outlive the tests, even when they are killed.
func startCommand(cmd *exec.Cmd) error {
	if err := readSources(); err != nil {
		return err
	}
	endWithThread(cmd)
	started := make(chan error)
	starts <- func() { started <- cmd.Start() }
	return <-started
}

// runCommand runs a command that does not outlive the tests.
func runCommand(cmd *exec.Cmd) error {
	if err := startCommand(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
