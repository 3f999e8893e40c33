package private

import (
	"os/exec"
	"syscall"
)

// Command is one of PostgreSQL's installed programs (postgres, initdb, pg_basebackup), as the account that the
// private server runs as, nil for this process's own. It ends with the process, or thread, that starts it. It is for
// tests, which need servers that they can break.
func Command(name string, args ...string) (cmd *exec.Cmd, owner *syscall.Credential, err error) {
	found, err := findBinaries(0)
	if err != nil {
		return nil, nil, err
	}
	runAs, err := serverAccount("")
	if err != nil {
		return nil, nil, err
	}
	cmd = serverCommand(job{Binaries: found.dir, RunAs: runAs}, name, args...)
	dieWithParent(cmd.SysProcAttr, syscall.SIGQUIT)
	return cmd, cmd.SysProcAttr.Credential, nil
}
