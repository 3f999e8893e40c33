package e2e

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHangupDoesNotEnd: SIGHUP is logged and does not end the process.
func TestHangupDoesNotEnd(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	p := startServe(t, url)
	p.cmd.Process.Signal(syscall.SIGHUP)
	p.awaitLog(t, "SIGHUP ignored")
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
		t.Errorf("after SIGHUP: got %d %s", a.status, a.body)
	}
	if err := p.stop(); err != nil {
		t.Errorf("aiv serve ended with %v", err)
	}
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
		{[]string{"work", "-url", "http://127.0.0.1:1", "-token-file", token, "--", "true"}, `"msg":"worker started"`},
		{[]string{"webhooks", "listen", "-addr", "127.0.0.1:0", "-secret", secret}, "Receiving deliveries"},
	} {
		w := startWorkProcess(t, exec.Command(binary, test.args...), "")
		wait(t, "aiv "+test.args[0], test.started, w.log.String)
		w.cmd.Process.Signal(syscall.SIGHUP)
		if err := awaitEnd(t, "aiv "+test.args[0], w.ended); err != nil {
			t.Errorf("aiv %s ended with %v\n%s", test.args[0], err, w.log.end())
		}
	}
}

// TestLogReaderGone: the process serves after the reader of its log has ended, and ends with status 0.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	p, log := startUnread(t, url)
	log.Close()
	for range 100 {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		t.Errorf("aiv serve ended with %v", err)
	}
}
