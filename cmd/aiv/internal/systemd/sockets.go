package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstSocket is the file descriptor of the first passed socket. It is SD_LISTEN_FDS_START.
const firstSocket = 3

// Listeners returns the listening sockets that systemd or another parent process opened for this process: the one named
// "admin" is the admin listener, the other one the public listener. A missing one is nil. Passed sockets stay open when
// the process ends, and several processes can serve the same one, so that a restart loses no connection. The
// connections in the queue of a socket that the process opened itself are lost when it ends.
func Listeners(getenv func(string) string) (public, admin net.Listener, err error) {
	if getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil, nil // no sockets, or the sockets of another process
	}
	n, err := strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > 2 {
		return nil, nil, fmt.Errorf("LISTEN_FDS is %q; pass one socket, and optionally one named admin", getenv("LISTEN_FDS"))
	}
	// Names are optional: systemd sets them by FileDescriptorName=, other parents may not.
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	for i := range n {
		l, err := listener(firstSocket + i)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case i < len(names) && names[i] == "admin" && admin == nil:
			admin = l
		case public == nil:
			public = l
		default:
			return nil, nil, errors.New("two sockets were passed and none is named admin; set FileDescriptorName=admin for one of them")
		}
	}
	return public, admin, nil
}

// listener returns the listener of a passed descriptor. Child processes, such as the private PostgreSQL, do not get
// it.
func listener(fd int) (net.Listener, error) {
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "passed socket")
	defer f.Close() // FileListener duplicates it
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("passed socket, file descriptor %d: %w", fd, err)
	}
	return l, nil
}
