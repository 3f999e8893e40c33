package private

import "syscall"

// DieWithParent makes the kernel send a signal to the child when its parent ends, even if the parent is killed.
func DieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
