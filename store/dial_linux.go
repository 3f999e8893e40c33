package store

import (
	"strings"
	"syscall"
)

// tcpUserTimeout bounds, in milliseconds, how long sent data may stay unacknowledged, or unsent because the server does
// not read [tcp(7)]. No keepalive probes are sent then.
const tcpUserTimeout = 18

// setUserTimeout sets TCP_USER_TIMEOUT to lostAfter. It does nothing for Unix sockets.
func setUserTimeout(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(lostAfter.Milliseconds()))
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}
