package e2e

import (
	"bufio"
	"encoding/base64"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// TestHangupDoesNotEnd: SIGHUP is logged, and the process serves on, also after the reader of its log has ended. After
// SIGTERM it ends with status 0.
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
	stops(t, p)
}

// TestWorkOutlivesTheReaderOfItsLog: after SIGTERM, aiv work ends with status 0 although nothing reads its log.
func TestWorkOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	url, _ := database(t)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte(newWorker(t, url).Token), 0o600))
	log, stderr, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(binary, "work", "-url", "http://127.0.0.1:1", "-token-file", token, "--", "true")
	cmd.Stderr = stderr
	p := launch(t, cmd)
	stderr.Close()
	_, err = bufio.NewReader(log).ReadString('\n') // it has started
	must(t, err)
	log.Close()
	stops(t, p)
}

// TestClosedTerminal: SIGHUP ends the commands that run in a terminal, with status 0.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	url, _ := database(t)
	must(t, os.WriteFile(token, []byte(newWorker(t, url).Token), 0o600))
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, test := range []struct {
		args    []string
		started string // in what it prints
	}{
		{[]string{"work", "-url", "http://127.0.0.1:1", "-token-file", token, "--", "true"},
			`"msg":"worker started","dispatcher":"http://127.0.0.1:1`},
		{[]string{"webhooks", "listen", "-addr", "127.0.0.1:0", "-secret", secret}, "Receiving deliveries"},
	} {
		p := launch(t, exec.Command(binary, test.args...))
		p.awaitLog(t, test.started)
		p.cmd.Process.Signal(syscall.SIGHUP)
		if err := p.wait(); err != nil {
			t.Errorf("aiv %s ended with %v", test.args[0], err)
		}
	}
}

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
