package store

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestLostConnectionEnds: the system ends a connection to a machine that is lost within lostAfter, with and without unacknowledged
// data.
func TestLostConnectionEnds(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config, err := parse("postgres://aiv@"+listener.Addr().String()+"/aiv", plain)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := config.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		controlErr := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) })
		if controlErr != nil || err != nil {
			t.Fatal(controlErr, err)
		}
		return value
	}
	if got := time.Duration(option(syscall.IPPROTO_TCP, tcpUserTimeout)) * time.Millisecond; got != lostAfter {
		t.Errorf("unacknowledged data ends the connection after %v, want %v", got, lostAfter)
	}
	idle, interval := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE), option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)
	probes := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if got := time.Duration(idle+interval*probes) * time.Second; option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 || got != lostAfter {
		t.Errorf("an idle connection ends after %v, want %v", got, lostAfter)
	}
}
