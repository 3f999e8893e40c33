package e2e

import (
	"os/exec"
	"syscall"
)

// endWithTest kills the process when the thread that starts it ends: the caller locks that thread until the process has
// ended. So no process outlives the tests, even when they are killed.
func endWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
