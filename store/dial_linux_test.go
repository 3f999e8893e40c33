package store

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestLostConnectionEnds: the system ends a connection to a machine that is lost within lostAfter, with and without
// unacknowledged data.
func TestLostConnectionEnds(t *testing.T) {
	t.Parallel()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	config, err := parse("postgres://aiv@"+listener.Addr().String()+"/aiv", plain)
	check(err)
	conn, err := config.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
	check(err)
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	check(err)
	option := func(level, name int) (value int) {
		check(raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) }))
		check(err)
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
