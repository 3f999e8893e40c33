package service

import "syscall"

// DisableCoreDumps keeps the kernel from writing this process's memory to a core file when it crashes, whatever the
// limits and wherever core files go: the memory contains raw keys of requests. The limit on the size of core files
// would not do, as it does not hold for those that are piped to a program [core(5)], and would be passed on to the
// private PostgreSQL. Another process of the same user cannot read the memory either [PR_SET_DUMPABLE(2const)].
//
// [core(5)]: https://man7.org/linux/man-pages/man5/core.5.html
// [PR_SET_DUMPABLE(2const)]: https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
func DisableCoreDumps() {
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
}
