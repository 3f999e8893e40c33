package e2e

import (
	"bufio"
	"encoding/base64"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// TestHangupDoesNotEnd: SIGHUP is logged, and the process serves on, also after the reader of its log has ended. After
// SIGTERM it ends with status 0. So does aiv work when the reader of its log has ended.
func TestHangupDoesNotEnd(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	p, log := startUnread(t, url)
	p.cmd.Process.Signal(syscall.SIGHUP)
	for lines := bufio.NewScanner(log); !strings.Contains(lines.Text(), "SIGHUP ignored"); {
		if !lines.Scan() {
			t.Fatalf("the log ends: %v", lines.Err())
		}
	}
	log.Close()
	for range 50 {
		p.serves(t, key.Key)
	}
	nowhere := &process{base: "http://127.0.0.1:1"}
	worker, log := launchUnread(t, exec.Command(binary, append(workArgs(t, nowhere, newWorker(t, url).Token), "--", "true")...))
	_, err := bufio.NewReader(log).ReadString('\n') // it has started
	must(t, err)
	log.Close()
	stops(t, worker, p)
}

// startUnread starts `aiv serve`, and reads its log until it serves.
func startUnread(t *testing.T, databaseURL string, args ...string) (p *process, log *os.File) {
	t.Helper()
	p, log = launchUnread(t, exec.Command(binary, onFreePorts("serve", append(args, "-database-url", databaseURL)...)...))
	if !p.readServing(log) {
		t.Fatalf("aiv serve ended: %v", p.wait())
	}
	return p, log
}

// launchUnread starts a command with a pipe as its log.
func launchUnread(t *testing.T, cmd *exec.Cmd) (p *process, log *os.File) {
	t.Helper()
	log, stderr, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { log.Close() })
	cmd.Stderr = stderr
	p = launch(t, cmd)
	stderr.Close()
	return p, log
}

// TestClosedTerminal: SIGHUP ends the commands that run in a terminal, with status 0.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	work := workArgs(t, &process{base: "http://127.0.0.1:1"}, newWorker(t, storetest.URL(t)).Token)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for started, args := range map[string][]string{ // started: in what it prints
		`"msg":"worker started","dispatcher":"http://127.0.0.1:1`: append(work, "--", "true"),
		"Receiving deliveries": {"webhooks", "listen", "-addr", "127.0.0.1:0", "-secret", secret},
	} {
		p := launch(t, exec.Command(binary, args...))
		p.awaitLog(t, started)
		p.cmd.Process.Signal(syscall.SIGHUP)
		if err := p.wait(); err != nil {
			t.Errorf("aiv %s ended with %v", args[0], err)
		}
	}
}

// TestSystemdIsNotified starts `aiv serve` as systemd does a unit of Type=notify with a watchdog, and reads its
// notifications.
func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
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
	p := start(t, storetest.URL(t), cmd)
	const ready = `^READY=1\nSTATUS=Serving 127\.0\.0\.1:.*\n`
	wait(t, "the notifications", ready+`WATCHDOG=1\n`, said.String)
	stops(t, p)
	wait(t, "the notifications", ready+`(WATCHDOG=1\n)+STOPPING=1\n`, said.String)
}
