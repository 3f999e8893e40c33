package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstPassed is the file descriptor of the first socket that is passed.
const firstPassed = 3

// listenOrTake is listen, but for the listeners that were passed.
func (o *serveOptions) listenOrTake(ctx context.Context, getenv func(string) string) (public, admin net.Listener, err error) {
	public, admin, err = passed(getenv)
	var config net.ListenConfig
	if err == nil && public == nil {
		public, err = config.Listen(ctx, "tcp", o.addr)
	}
	if err == nil && admin == nil {
		admin, err = config.Listen(ctx, "tcp", o.adminAddr)
	}
	if err != nil && public != nil {
		public.Close()
	}
	return public, admin, err
}

// passed returns the listening sockets that systemd, or whoever starts this process, has opened for it [sd_listen_fds(3)]:
// the one named admin is the admin listener's, the other one is the public one. They stay open when the process ends, so
// that connections wait for the next one, and several processes may serve the same one: a restart loses none. That of a
// socket of the process's own (or of one of several, with SO_REUSEPORT) would: what waits in its queue ends with it.
//
// [sd_listen_fds(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html
func passed(getenv func(string) string) (public, admin net.Listener, err error) {
	if getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil, nil // none, or another process's
	}
	n, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > 2 {
		return nil, nil, fmt.Errorf("LISTEN_FDS is %q; one socket is taken, and one named admin", getenv("LISTEN_FDS"))
	}
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	for i := range n {
		l, err := listener(firstPassed + i)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case i < len(names) && names[i] == "admin" && admin == nil:
			admin = l
		case public == nil:
			public = l
		default:
			return nil, nil, errors.New("two sockets were passed; one of them must be named admin (FileDescriptorName=admin)")
		}
	}
	return public, admin, nil
}

func listener(fd int) (net.Listener, error) {
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "passed socket")
	defer f.Close() // the listener has a copy
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket passed as file descriptor %d: %w", fd, err)
	}
	return l, nil
}
