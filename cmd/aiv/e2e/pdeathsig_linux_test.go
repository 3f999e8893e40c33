package e2e

import (
	"os/exec"
	"syscall"
)

// endWithThread makes the kernel kill the process when the thread that starts it ends.
func endWithThread(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
