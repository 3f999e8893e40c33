package private

import (
	"os/exec"
	"sync"
	"syscall"
)

// Command returns one of PostgreSQL's installed programs (postgres, initdb), which runs as the account of the private
// server. owner is nil if that is the account of this process. On Linux the program is killed when the thread that
// started it ends. Command is for tests that need a separate server.
func Command(name string, args ...string) (cmd *exec.Cmd, owner *syscall.Credential, err error) {
	binaries, err := installed()
	if err != nil {
		return nil, nil, err
	}
	runAs, err := serverUser("")
	if err != nil {
		return nil, nil, err
	}
	cmd = serverCommand(job{Binaries: binaries, RunAs: runAs}, name, args...)
	dieWithParent(cmd.SysProcAttr, syscall.SIGQUIT)
	return cmd, cmd.SysProcAttr.Credential, nil
}

// Unpack fills an empty folder of the server's account from an archive like that of [Config]. It is for tests that need
// a separate server.
func Unpack(archive, into string) error {
	runAs, err := serverUser("")
	if err != nil {
		return err
	}
	return unpack(job{Archive: archive, RunAs: runAs}, into)
}

// installed finds the programs once, because that takes several processes.
var installed = sync.OnceValues(func() (string, error) { return findBinaries(0) })
