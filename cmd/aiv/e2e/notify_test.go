package e2e

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

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
	heard := make(chan string, 100_000)
	go func() { // all the time: the process waits while the queue of the socket is full
		said := make([]byte, 1024)
		for {
			n, err := conn.Read(said)
			if err != nil {
				return
			}
			heard <- string(said[:n])
		}
	}()
	hear := func() string {
		t.Helper()
		select {
		case said := <-heard:
			return said
		case <-time.After(patience):
			t.Fatal("no further notification")
			return ""
		}
	}
	cmd := exec.Command(binary, onFreePorts("serve")...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=200000")
	p := start(t, url, cmd)
	if said := hear(); !strings.HasPrefix(said, "READY=1\nSTATUS=Serving 127.0.0.1:") {
		t.Errorf("it says %q first", said)
	}
	// Its tables are gone, so it is not ready, but it lives.
	storetest.Exec(t, pool, `DROP SCHEMA public CASCADE`)
	for range 3 {
		if said := hear(); said != "WATCHDOG=1" {
			t.Errorf("it says %q", said)
		}
	}
	stops(t, p)
	for said := hear(); !strings.HasPrefix(said, "STOPPING=1\n"); said = hear() {
		if said != "WATCHDOG=1" {
			t.Fatalf("it says %q", said)
		}
	}
}
