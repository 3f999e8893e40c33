package store

import (
	"strings"
	"syscall"
)

// tcpUserTimeout bounds how long sent data may stay unacknowledged, in milliseconds [tcp(7)]. Keepalive probes are not sent while data is.
const tcpUserTimeout = 18

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
