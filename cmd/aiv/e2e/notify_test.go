package e2e

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestSystemdIsNotified starts `aiv serve` as systemd does a unit of Type=notify with a watchdog, and reads its
// notifications.
func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	url, pool := database(t)
	path := t.TempDir() + "/notify"
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	defer conn.Close()
	var said logBuffer
	go func() { // all the time: the process waits while the queue of the socket is full
		for b := make([]byte, 1024); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			said.Write(append(b[:n:n], '\n'))
		}
	}()
	cmd := exec.Command(binary, onFreePorts("serve")...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=200000")
	p := start(t, url, cmd)
	const ready = `^READY=1\nSTATUS=Serving 127\.0\.0\.1:.*\n`
	wait(t, "the notifications", ready, said.String)
	// Its tables are gone, so it is not ready, but it lives.
	storetest.Exec(t, pool, `DROP SCHEMA public CASCADE`)
	lives := func() int { return strings.Count(said.String(), "WATCHDOG=1\n") }
	before := lives()
	storetest.Eventually(t, "it notifies the watchdog", func() bool { return lives() >= before+3 })
	stops(t, p)
	wait(t, "the notifications", ready+`(WATCHDOG=1\n)+STOPPING=1\n`, said.String)
}
